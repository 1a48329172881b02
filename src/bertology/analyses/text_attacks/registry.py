"""All attacks by name, and random edits of the same size as controls."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from bertology.analyses.text_attacks.distractors import DISTRACTOR_ATTACKS, AttackedExample
from bertology.analyses.text_attacks.perturbations import (
    AttackConfig,
    add_typos,
    random_edit_of_equal_size,
    remove_function_words,
    shuffle_sentences,
    shuffle_words,
)
from bertology.analyses.text_attacks.word_edits import remove_all_words
from bertology.corpus.example import Example, ExampleKind
from bertology.corpus.sentence import Sentence
from bertology.errors import unknown_name
from bertology.numerics.edit_distance import edit_distance

SegmentsByKind = Mapping[ExampleKind, tuple[int, ...]]
"""Indices of the segments that an attack changes, by kind of example."""


TextPerturbation = Callable[[Sentence, Random, AttackConfig], Sentence]


@dataclass(frozen=True)
class TextAttack:
    """An attack and the kinds of example it applies to.

    `rng_key` seeds the random generator of each example; it is not the name, so that attacks can be renamed without
    changing numbers.
    """

    name: str
    description: str
    example_kinds: frozenset[ExampleKind]
    apply: Callable[[Example, Random, AttackConfig], AttackedExample]
    rng_key: str

    def __call__(
        self, example: Example, config: AttackConfig, seed: int, *, original: Example | None = None
    ) -> AttackedExample:
        """The attacked example, which depends on the texts, the attack and the seed only.

        `original` is the example before it was cut to a model's maximum input, so that random choices are the same.
        """
        return self.apply(example, example_rng(original or example, self.rng_key, seed), config)


def parse_attacks(names: str, example_kinds: Collection[ExampleKind]) -> list[TextAttack]:
    """Attacks from a comma-separated list, or `all` that apply to examples of these kinds."""
    applicable = {name: attack for name, attack in ATTACKS.items() if attack.example_kinds & set(example_kinds)}
    if names == "all":
        return list(applicable.values())
    requested = [name.strip() for name in names.split(",")]
    for name in requested:
        if name not in applicable:
            raise unknown_name("attack for these examples", name, applicable)
    return [applicable[name] for name in requested]


def example_rng(example: Example, *key: object) -> Random:
    """A random generator that depends on the example's texts and on the key.

    It does not depend on the label, which each model spells in its own way, nor on the other examples.
    """
    texts = "\n".join(segment.text for segment in example.segments)
    return Random(hashlib.sha256(f"{texts}\n{key}".encode()).digest())


def random_edit(example: Example, attacked: Example, vocabulary: Sequence[str], rng: Random) -> Example:
    """The example with a random edit of equal size in every segment that was attacked."""
    segments = [
        random_edit_of_equal_size(before, after, vocabulary, rng) if before.words != after.words else before
        for before, after in zip(example.segments, attacked.segments, strict=True)
    ]
    return replace(example, segments=tuple(segments))


def word_edit_distance(original: Example, attacked: Example) -> int:
    """The edit distance in words, summed over segments."""
    pairs = zip(original.segments, attacked.segments, strict=True)
    return sum(edit_distance(before.words, after.words) for before, after in pairs)


def word_pool(examples: Iterable[Example]) -> list[str]:
    """All alphabetic words of the examples, sorted, each as often as it occurs."""
    return sorted(word for example in examples for part in example.segments for word in part.words if word.isalpha())


def _segment_attack(
    name: str, description: str, segments: SegmentsByKind, perturb: TextPerturbation, rng_key: str
) -> TextAttack:
    def attack(example: Example, rng: Random, config: AttackConfig) -> AttackedExample:
        indices = segments[example.kind]
        perturbed = [
            perturb(segment, rng, config) if index in indices else segment
            for index, segment in enumerate(example.segments)
        ]
        return AttackedExample(replace(example, segments=tuple(perturbed)))

    return TextAttack(name, description, frozenset(segments), attack, rng_key)


def _shuffle_words(sentence: Sentence, rng: Random, config: AttackConfig) -> Sentence:
    return shuffle_words(sentence, rng, config.shuffle_distance)


def _remove_words(sentence: Sentence, rng: Random, config: AttackConfig) -> Sentence:
    return remove_all_words(sentence)


TEXTS: SegmentsByKind = {"sentence": (0,), "pair": (0, 1), "question": (0, 1), "choice": (0, 1), "minimal_pair": (0, 1)}
LONG_TEXTS: SegmentsByKind = {"sentence": (0,), "pair": (0, 1), "question": (1,), "choice": (0,)}
PASSAGES: SegmentsByKind = {"question": (1,), "choice": (0,)}
QUESTIONS: SegmentsByKind = {"question": (0,), "choice": (1,)}
FIRST: SegmentsByKind = {"pair": (0,)}
SECOND: SegmentsByKind = {"pair": (1,)}

# The last column is the key of the random generator.
ATTACKS: dict[str, TextAttack] = {
    attack.name: attack
    for attack in (
        _segment_attack(
            "whitespace only (control)", "the same words with single spaces", TEXTS,
            lambda sentence, rng, config: sentence.with_single_spaces(), "spaces",
        ),
        _segment_attack("shuffled words", "the words of all texts", TEXTS, _shuffle_words, "words shuffled"),
        _segment_attack("shuffled first text", "the words of the first text", FIRST, _shuffle_words, "first shuffled"),
        _segment_attack(
            "shuffled second text", "the words of the second text", SECOND, _shuffle_words, "second shuffled"
        ),
        _segment_attack("shuffled passage", "the words of the passage", PASSAGES, _shuffle_words, "passage shuffled"),
        _segment_attack(
            "shuffled question", "the words of the question", QUESTIONS, _shuffle_words, "question shuffled"
        ),
        _segment_attack(
            "shuffled sentences", "intact sentences in another order", LONG_TEXTS,
            lambda sentence, rng, config: shuffle_sentences(sentence, rng), "sentences shuffled",
        ),
        _segment_attack(
            "function words removed", "no articles, auxiliaries, prepositions or pronouns", TEXTS,
            lambda sentence, rng, config: remove_function_words(sentence), "no function words",
        ),
        _segment_attack(
            "typos", "a typo in some of the longer words", TEXTS,
            lambda sentence, rng, config: add_typos(sentence, rng, config.typo_rate), "slips",
        ),
        _segment_attack("second text only", "no first text: hypothesis only", FIRST, _remove_words, "no first"),
        _segment_attack("first text only", "no second text: premise only", SECOND, _remove_words, "no second"),
        _segment_attack("question removed", "no question", QUESTIONS, _remove_words, "no question"),
        _segment_attack("passage removed", "no passage", {"choice": (0,)}, _remove_words, "no passage"),
        _segment_attack(
            "options only", "neither passage nor question", {"choice": (0, 1)}, _remove_words, "options alone"
        ),
        *(
            TextAttack(name, description, frozenset({"choice"}), apply, name)
            for name, (description, apply) in DISTRACTOR_ATTACKS.items()
        ),
    )
}  # fmt: skip
