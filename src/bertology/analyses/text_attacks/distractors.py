"""Si et al.'s seven attacks on multiple choice with unreadable text (si2019): only misleading words are added.

The question, the gold option and the words of the passage are not changed. Words are shuffled until the edit distance
to the original order, divided by length, reaches a threshold, whose value the paper does not give; for
AddSent2Pas-Shuffle also until no distractor occurs intact in the added text. An attack called AddAns2Pas, sometimes
cited, is not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from bertology.analyses.text_attacks.perturbations import ShuffleConfig, shuffle
from bertology.analyses.text_attacks.word_edits import apply_edits, identity_edits, replace_all_words, sentence_ranges
from bertology.corpus.corpus import Example, concatenate_segments
from bertology.corpus.sentence import Sentence


@dataclass(frozen=True)
class DistractorConfig:
    """Settings of the attacks.

    `share_sentence`: all distractors of a question get the same sampled sentence, as in the paper's example; otherwise
    each gets its own, as in its text.
    """

    shuffling: ShuffleConfig = field(default_factory=ShuffleConfig)
    share_sentence: bool = False


@dataclass(frozen=True)
class AttackedExample:
    """An attacked example, the edit distance of each shuffle, and the number of shuffles that were not enough."""

    example: Example
    edit_distances: tuple[float, ...] = ()
    n_below_minimum: int = 0


DistractorFunction = Callable[[Example, Random, DistractorConfig], AttackedExample]


@dataclass(frozen=True)
class DistractorAttack:
    """One of the seven attacks."""

    description: str
    apply: DistractorFunction


def _add_to_passage(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    passage, question = example.segments[:2]
    distractors = _distractors(example)
    words = concatenate_segments((question, *distractors)).words
    forbidden = [distractor.words for distractor in distractors if len(distractor) > 1]
    order = shuffle(words, rng, config.shuffling, forbidden=forbidden)
    added = replace_all_words(question, [words[index] for index in order.permutation])
    # A distractor of one word always occurs intact.
    is_below_minimum = not order.reached_minimum or any(len(distractor) < 2 for distractor in distractors)
    segments = (concatenate_segments((passage, added)), *example.segments[1:])
    return AttackedExample(replace(example, segments=segments), (order.distance,), int(is_below_minimum))


def _add_sentence(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    return _replace_distractors(example, _with_sentences(example, rng, config))


def _add_shuffled_sentence(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    return _shuffle_into_distractors(example, _with_sentences(example, rng, config), rng, config)


def _replace_with_shuffled_sentence(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    sentences = [sentence for _, sentence in _pair_with_sentences(example, rng, config)]
    return _shuffle_into_distractors(example, sentences, rng, config)


def _add_answer(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    return _replace_distractors(example, _with_answers(example))


def _add_shuffled_answer(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    return _shuffle_into_distractors(example, _with_answers(example), rng, config)


def _replace_with_shuffled_answer(example: Example, rng: Random, config: DistractorConfig) -> AttackedExample:
    """An answer that no shuffle changes would be a second correct option: the distractors stay."""
    return _shuffle_into_distractors(example, [_gold_option(example)] * len(_distractors(example)), rng, config)


DISTRACTOR_ATTACKS = {
    "AddSent2Pas-Shuffle": DistractorAttack(
        "the words of the question and of all distractors, shuffled, after the passage", _add_to_passage
    ),
    "AddSent2Opt-Shuffle": DistractorAttack(
        "the words of each distractor and of a sentence of the passage, shuffled", _add_shuffled_sentence
    ),
    "AddAns2Opt-Shuffle": DistractorAttack(
        "the words of each distractor and of the correct answer, shuffled", _add_shuffled_answer
    ),
    "Sent2Opt-Shuffle": DistractorAttack(
        "a shuffled sentence of the passage instead of each distractor", _replace_with_shuffled_sentence
    ),
    "Ans2Opt-Shuffle": DistractorAttack(
        "the shuffled correct answer instead of each distractor", _replace_with_shuffled_answer
    ),
    "AddSent2Opt": DistractorAttack("a sentence of the passage after each distractor", _add_sentence),
    "AddAns2Opt": DistractorAttack("the correct answer after each distractor", _add_answer),
}
"""In the order of the paper's table 2."""


def _gold_index(example: Example) -> int:
    return int(example.label or 0)


def _gold_option(example: Example) -> Sentence:
    return example.segments[2 + _gold_index(example)]


def _distractors(example: Example) -> list[Sentence]:
    return [option for index, option in enumerate(example.segments[2:]) if index != _gold_index(example)]


def _with_answers(example: Example) -> list[Sentence]:
    return [concatenate_segments((distractor, _gold_option(example))) for distractor in _distractors(example)]


def _with_sentences(example: Example, rng: Random, config: DistractorConfig) -> list[Sentence]:
    return [concatenate_segments(pair) for pair in _pair_with_sentences(example, rng, config)]


def _pair_with_sentences(example: Example, rng: Random, config: DistractorConfig) -> list[tuple[Sentence, Sentence]]:
    """Each distractor with a random sentence of the passage."""
    passage = example.segments[0]
    ranges, words = sentence_ranges(passage), identity_edits(passage)
    distractors = _distractors(example)
    if not ranges:
        return [(distractor, distractor) for distractor in distractors]
    shared = rng.choice(ranges)
    sampled = [shared if config.share_sentence else rng.choice(ranges) for _ in distractors]
    return [
        (distractor, apply_edits(passage, words[indices.start : indices.stop]))
        for distractor, indices in zip(distractors, sampled, strict=True)
    ]


def _shuffle_into_distractors(
    example: Example, texts: Sequence[Sentence], rng: Random, config: DistractorConfig
) -> AttackedExample:
    """The example with the shuffled words of each text as distractor; a text that cannot be shuffled replaces none."""
    distractors: list[Sentence] = []
    distances: list[float] = []
    n_below_minimum = 0
    for distractor, text in zip(_distractors(example), texts, strict=True):
        order = shuffle(text.words, rng, config.shuffling)
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
