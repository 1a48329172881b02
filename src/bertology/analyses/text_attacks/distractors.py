"""Si et al.'s seven attacks on multiple choice with unreadable text (si2019): only misleading words are added.

The question, the gold option and the words of the passage are not changed. Words are shuffled until the edit distance
to the original order, divided by length, reaches a threshold, whose value the paper does not give; for
AddSent2Pas-Shuffle also until no distractor occurs intact in the added text. An attack called AddAns2Pas, sometimes
cited, is not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from bertology.analyses.text_attacks.perturbations import AttackConfig, shuffle
from bertology.analyses.text_attacks.word_edits import apply_edits, identity_edits, replace_all_words, sentence_ranges
from bertology.corpus.example import Example, concatenate_segments
from bertology.corpus.sentence import Sentence


@dataclass(frozen=True)
class AttackedExample:
    """An attacked example, the edit distance of each shuffle, and the number of shuffles that were not enough.

    The last `n_added` words of the passage are new; `is_truncated` if words were cut to fit the model.
    """

    example: Example
    edit_distances: tuple[float, ...] = ()
    n_below_minimum: int = 0
    n_added: int = 0
    is_truncated: bool = False


DistractorAttack = Callable[[Example, Random, AttackConfig], AttackedExample]


def _add_to_passage(example: Example, rng: Random, config: AttackConfig) -> AttackedExample:
    passage, question = example.segments[:2]
    distractors = _distractors(example)
    words = concatenate_segments((question, *distractors)).words
    forbidden = [distractor.words for distractor in distractors if len(distractor) > 1]
    order = shuffle(words, rng, config.shuffle_distance, forbidden=forbidden)
    added = replace_all_words(question, [words[index] for index in order.permutation])
    # A distractor of one word always occurs intact.
    is_below_minimum = not order.reached_minimum or any(len(distractor) < 2 for distractor in distractors)
    segments = (concatenate_segments((passage, added)), *example.segments[1:])
    return AttackedExample(
        replace(example, segments=segments), (order.distance,), int(is_below_minimum), n_added=len(added)
    )


def _change_options(
    texts_of: Callable[[Example, Random, AttackConfig], list[Sentence]], *, add: bool, shuffled: bool
) -> DistractorAttack:
    """An attack that adds a text to each distractor, or replaces it by the text."""

    def attack(example: Example, rng: Random, config: AttackConfig) -> AttackedExample:
        texts = texts_of(example, rng, config)
        if add:
            texts = [concatenate_segments(pair) for pair in zip(_distractors(example), texts, strict=True)]
        if shuffled:
            return _shuffle_into_distractors(example, texts, rng, config)
        return _replace_distractors(example, texts)

    return attack


def _random_sentences(example: Example, rng: Random, config: AttackConfig) -> list[Sentence]:
    """A random sentence of the passage for each distractor; the distractor itself if the passage is empty."""
    passage, distractors = example.segments[0], _distractors(example)
    ranges, words = sentence_ranges(passage), identity_edits(passage)
    if not ranges:
        return distractors
    shared = rng.choice(ranges)
    sampled = [shared if config.same_distractor else rng.choice(ranges) for _ in distractors]
    return [apply_edits(passage, words[indices.start : indices.stop]) for indices in sampled]


def _correct_answers(example: Example, rng: Random, config: AttackConfig) -> list[Sentence]:
    """The correct answer for each distractor."""
    return [_gold_option(example)] * len(_distractors(example))


DISTRACTOR_ATTACKS: dict[str, tuple[str, DistractorAttack]] = {
    "AddSent2Pas-Shuffle": (
        "the words of the question and of all distractors, shuffled, after the passage",
        _add_to_passage,
    ),
    "AddSent2Opt-Shuffle": (
        "the words of each distractor and of a sentence of the passage, shuffled",
        _change_options(_random_sentences, add=True, shuffled=True),
    ),
    "AddAns2Opt-Shuffle": (
        "the words of each distractor and of the correct answer, shuffled",
        _change_options(_correct_answers, add=True, shuffled=True),
    ),
    "Sent2Opt-Shuffle": (
        "a shuffled sentence of the passage instead of each distractor",
        _change_options(_random_sentences, add=False, shuffled=True),
    ),
    "Ans2Opt-Shuffle": (
        "the shuffled correct answer instead of each distractor",
        _change_options(_correct_answers, add=False, shuffled=True),
    ),
    "AddSent2Opt": (
        "a sentence of the passage after each distractor",
        _change_options(_random_sentences, add=True, shuffled=False),
    ),
    "AddAns2Opt": (
        "the correct answer after each distractor",
        _change_options(_correct_answers, add=True, shuffled=False),
    ),
}
"""Descriptions and attacks, in the order of the paper's table 2."""


def _gold_index(example: Example) -> int:
    return int(example.label or 0)


def _gold_option(example: Example) -> Sentence:
    return example.segments[2 + _gold_index(example)]


def _distractors(example: Example) -> list[Sentence]:
    return [option for index, option in enumerate(example.segments[2:]) if index != _gold_index(example)]


def _shuffle_into_distractors(
    example: Example, texts: Sequence[Sentence], rng: Random, config: AttackConfig
) -> AttackedExample:
    """The example with the shuffled words of each text as distractor.

    A text that cannot be shuffled replaces none: an intact answer would be a second correct option.
    """
    distractors: list[Sentence] = []
    distances: list[float] = []
    n_below_minimum = 0
    for distractor, text in zip(_distractors(example), texts, strict=True):
        order = shuffle(text.words, rng, config.shuffle_distance)
        words = [text.words[index] for index in order.permutation]
        distractors.append(replace_all_words(distractor, words) if order.distance else distractor)
        distances.append(order.distance)
        n_below_minimum += not order.reached_minimum
    return replace(
        _replace_distractors(example, distractors), edit_distances=tuple(distances), n_below_minimum=n_below_minimum
    )


def _replace_distractors(example: Example, distractors: Sequence[Sentence]) -> AttackedExample:
    options = list(distractors)
    options.insert(_gold_index(example), _gold_option(example))
    return AttackedExample(replace(example, segments=(*example.segments[:2], *options)))
