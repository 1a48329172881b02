"""The n-th word of a sentence: do representations encode position? (lin2019, section 3.1).

The paper uses newspaper text that may not be redistributed; these sentences are from the grammar of `subject_noun`: 12
to 39 words, modifiers on subject and object, and adjectives that shift all positions. The first word is always a
determiner, so n starts at 2. `train` and `test` share no sentence. The marked word is `target`. Factors: `split`, `n`,
`subject` and `object` (the modifier of each).
"""

from __future__ import annotations

from typing import Literal

from bertology.corpus.example import Example
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.open_sesame_grammar import determiner, modal, modifiers, nominal, objects, transitive
from bertology.corpus.phrase_spaces import Phrase, sequence, to_marked_sentence
from bertology.corpus.sample_spaces import SampleSpace, map_space, split_train_test
from bertology.corpus.text_files import parse_int
from bertology.errors import Refusal

FIRST_POSITION, LAST_POSITION = 2, 9
SPLIT_WEIGHTS = {"train": 4, "test": 1}
LONG_MODIFIERS = ("prepositional", "object_relative", "subject_relative")
"""Modifiers that contain a noun: with one on the subject and one on the object, sentences have at least 12 words."""


@generator("nth_token", description="Open Sesame n-th token: the word at a given position")
def nth_token_strata(*, n: int | str = 5, split: Literal["all", "train", "test"] = "all") -> list[Stratum]:
    """Return the strata for the position `n` (2 to 9, counted from 1) and a split: train, test, or all (4:1)."""
    position = parse_int(str(n))
    if position is None or not FIRST_POSITION <= position <= LAST_POSITION:
        raise Refusal(
            f"The option n is {n!r}", f"a position from {FIRST_POSITION} to {LAST_POSITION}", "Write for example n=5"
        )
    return [
        Stratum({"split": name, "n": str(position), "subject": subject, "object": object}, space, weight)
        for subject in LONG_MODIFIERS
        for object in LONG_MODIFIERS
        for (name, weight), space in zip(
            SPLIT_WEIGHTS.items(), split_train_test(_sentences(subject, object, position)), strict=True
        )
        if split in ("all", name)
    ]


def _sentences(subject: str, object: str, n: int) -> SampleSpace[Example]:
    space = sequence(determiner, nominal(), modifiers()[subject], modal, transitive, objects()[object])

    def to_example(phrase: Phrase) -> Example:
        words = [word._replace(role="target" if number == n else "") for number, word in enumerate(phrase, start=1)]
        return Example((to_marked_sentence(tuple(words), ("target",)),))

    return map_space(space, to_example)
