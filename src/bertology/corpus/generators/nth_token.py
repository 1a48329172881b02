"""The n-th word of a sentence, whatever it is: does a layer still know positions? (lin2019, section 3.1).

The paper uses newspaper text that may not be redistributed; these sentences are from the grammar of `subject_noun`:
12 to 39 words, a modifier on subject and object, adjectives that shift everything. A determiner always comes first,
so n starts at 2. `train` and `test` share no sentence. The mark is `target`. Factors: `split`, `n`, `subject` and
`object` (the modifier of each).
"""

from __future__ import annotations

from bertology.corpus.corpus import Item
from bertology.corpus.generate import Stratum, generator, one_of
from bertology.corpus.phrases import Phrase, marked, sequence
from bertology.corpus.sesame import determiner, modal, modifiers, nominal, objects, transitive
from bertology.corpus.spaces import Space, mapped
from bertology.corpus.spaces import split as halves
from bertology.corpus.whole_numbers import whole_number
from bertology.errors import Refusal

FIRST, LAST = 2, 9
SHARES = {"train": 4, "test": 1}
LONG = ("prepositional", "object_relative", "subject_relative")
"""Modifiers with a noun in them: with one on the subject and one on the object no sentence has less than 12 words."""


@generator("nth_token", about="Open Sesame n-th token: the word at a position, whatever it is")
def nth_token(*, n: int | str = 5, split: str = "all") -> list[Stratum]:
    """`n`: the position from 1, from 2 to 9; `split`: train, test, or all, four to one."""
    one_of("split", split, ("all", *SHARES))
    place = whole_number(str(n))
    if place is None or not FIRST <= place <= LAST:
        raise Refusal(f"The option n is {n!r}", f"a position from {FIRST} to {LAST}", "Give one with n=5")
    return [
        Stratum({"split": part, "n": str(place), "subject": subject, "object": object}, half, share)
        for subject in LONG
        for object in LONG
        for (part, share), half in zip(SHARES.items(), halves(_sentences(subject, object, place)), strict=True)
        if split in ("all", part)
    ]


def _sentences(subject: str, object: str, n: int) -> Space[Item]:
    space = sequence(determiner, nominal(), modifiers()[subject], modal, transitive, objects()[object])

    def item(phrase: Phrase) -> Item:
        tokens = [token._replace(role="target" if place == n else "") for place, token in enumerate(phrase, start=1)]
        return Item((marked(tuple(tokens), ("target",)),))

    return mapped(space, item)
