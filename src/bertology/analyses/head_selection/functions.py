"""Functions of heads after Voita et al. (2019): a fixed position, a dependency relation, the rarest word.

Each function is a set of gold links (see `gold_links`): a head has the function if the word it attends to most is the
target. Functions are selected on one half of the sentences and scored on the other, over many random halves (see
`estimates.cross_fitting`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from bertology.analyses.head_selection.gold_links import (
    CHANCE,
    FIXED_OFFSET,
    OFFSETS,
    WORD_BASELINES,
    GoldLink,
    LinkBaseline,
    LinkCounts,
    LinkExtractor,
    count_links,
)
from bertology.analyses.head_selection.selection import SIGNIFICANCE_LEVEL
from bertology.analyses.label_criteria import MIN_CHOSEN, POSITION, WORD_CHOICE
from bertology.analyses.word_relations import segment_of_words
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.corpus.word_frequencies import WordFrequencies, word_form
from bertology.encoder.token_batch import RecordedInput, word_annotations, word_governors
from bertology.estimates.cross_fitting import N_SPLITS, cross_fitted_p, held_out_ratio, random_halves
from bertology.estimates.estimate import Estimate
from bertology.estimates.hypothesis_tests import TOLERANCE, holm
from bertology.estimates.resampling import ratio
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import Head

STRONGEST_WORD = strongest_word_site()
FunctionKind = Literal["positional", "syntactic", "rarest word"]

POSITION_LABELS: Mapping[int, str] = {
    offset: {1: "next word", -1: "previous word"}.get(
        offset, f"{abs(offset)} words {'after' if offset > 0 else 'before'}"
    )
    for offset in OFFSETS
}
RAREST_WORD = "rarest word"
TO_GOVERNOR, TO_DEPENDENT = "dependent to governor", "governor to dependent"


def function_kind(label: str) -> FunctionKind:
    """The kind of function that a label names."""
    if label in POSITION_LABELS.values():
        return "positional"
    return "rarest word" if label == RAREST_WORD else "syntactic"


def function_links(
    recorded_input: RecordedInput, frequencies: WordFrequencies, frequent_words: frozenset[str]
) -> list[GoldLink]:
    """The links of all functions in an input; `frequent_words` never count as the rarest word."""
    return [
        *_position_links(recorded_input),
        *_dependency_links(recorded_input),
        *_rarest_word_links(recorded_input, frequencies, frequent_words),
    ]


def _position_links(recorded_input: RecordedInput) -> list[GoldLink]:
    segments = segment_of_words(recorded_input).tolist()
    return [
        GoldLink(word, (word + offset,), (label,), word)
        for word in range(len(segments))
        for offset, label in POSITION_LABELS.items()
        if 0 <= word + offset < len(segments) and segments[word + offset] == segments[word]
    ]


def _dependency_links(recorded_input: RecordedInput) -> list[GoldLink]:
    """From each word to its governor, and from each governor to any of its dependents of one relation."""
    links: list[GoldLink] = []
    dependents: dict[tuple[int, str], list[int]] = {}
    for word, (governor, relation) in enumerate(
        zip(word_governors(recorded_input), word_annotations(recorded_input, "relations"), strict=True)
    ):
        if governor is None or governor < 0 or relation is None or relation == "punct":
            continue
        for name in dict.fromkeys((relation.split(":")[0], relation)):
            links.append(GoldLink(word, (governor,), (f"{name}, {TO_GOVERNOR}",), word))
            dependents.setdefault((governor, name), []).append(word)
    for (governor, name), words in dependents.items():
        links.append(GoldLink(governor, tuple(words), (f"{name}, {TO_DEPENDENT}",), governor))
    return links


def _rarest_word_links(
    recorded_input: RecordedInput, frequencies: WordFrequencies, frequent_words: frozenset[str]
) -> list[GoldLink]:
    """From each word to the rarest word of the input, unless that is a frequent word.

    Of several words with the lowest frequency a random one is the target, the same for all heads: a head that attends
    to any of them is right by chance.
    """
    rarest = rarest_words(recorded_input, frequencies, frequent_words)
    if not rarest:
        return []
    text = " ".join(recorded_input.text.words)
    targets = rarest[min(rarest, key=lambda form: hashlib.sha256(f"{text}\n{form}".encode()).digest())]
    sources = {word for word in recorded_input.tokens.word_ids.tolist() if word >= 0} - set(targets)
    return [GoldLink(word, tuple(targets), (RAREST_WORD,), word) for word in sorted(sources)]


def rarest_words(
    recorded_input: RecordedInput, frequencies: WordFrequencies, frequent_words: frozenset[str]
) -> dict[str, list[int]]:
    """The positions of each form with the lowest frequency of the input; empty if that is a frequent word."""
    positions: dict[str, list[int]] = {}
    for word in sorted({word for word in recorded_input.tokens.word_ids.tolist() if word >= 0}):
        positions.setdefault(word_form(recorded_input.text.words[word]), []).append(word)
    lowest = min((frequencies[form] for form in positions), default=0)
    return {
        form: words for form, words in positions.items() if frequencies[form] == lowest and form not in frequent_words
    }


def _guess_rarest_word(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
    """(variant, link) whether the word at a fixed offset is a target, or one of the words split into most tokens."""
    word_ids = recorded_input.tokens.word_ids
    n_tokens = np.bincount(word_ids[word_ids >= 0], minlength=len(recorded_input.text.words))
    p_longest: list[float] = []
    for link in links:
        is_other = np.arange(len(n_tokens)) != link.source
        longest = np.flatnonzero(is_other & (n_tokens == n_tokens[is_other].max(initial=0)))
        p_longest.append(float(np.isin(longest, link.targets).mean()) if len(longest) else 0.0)
    return np.concatenate([WORD_BASELINES[FIXED_OFFSET].p_correct(recorded_input, links), [p_longest]])


GUESSED_RAREST_WORD = "best fixed offset, or most tokens"
FUNCTION_BASELINES: Mapping[str, LinkBaseline] = {
    **WORD_BASELINES,
    GUESSED_RAREST_WORD: LinkBaseline((*WORD_BASELINES[FIXED_OFFSET].variants, "most tokens"), _guess_rarest_word),
}
"""Rare words are split into many tokens, and attention to a word is the sum over its tokens."""


def count_function_links(recording: Recording, extract_links: LinkExtractor, labels: Sequence[str] = ()) -> LinkCounts:
    """The correct answers of every head to the links of functions, and those of the baselines."""
    return count_links(
        recording, STRONGEST_WORD, extract_links, directions=("",), labels=labels, baselines=FUNCTION_BASELINES
    )


@dataclass(frozen=True)
class FunctionThresholds:
    """Minimum accuracy of a position, gain over the best fixed offset for a relation, accuracy for the rarest word.

    The rarest word needs the gain of a relation as well.
    """

    positional: float = POSITION.min_score
    syntactic: float = WORD_CHOICE.min_margin
    rare_word: float = WORD_CHOICE.min_score

    def shortfall(self, label: str, accuracy: ArrayLike, baseline: ArrayLike) -> FloatArray:
        """The distance below the threshold; 0 or less if it is reached."""
        accuracy, baseline = np.asarray(accuracy, np.float64), np.asarray(baseline, np.float64)
        match function_kind(label):
            case "positional":
                return self.positional - accuracy
            case "syntactic":
                return baseline + self.syntactic - accuracy
            case "rarest word":
                return np.maximum(self.rare_word, baseline + self.syntactic) - accuracy


@dataclass(frozen=True)
class HeadFunction:
    """The function selected most often for a head, with its scores on the halves that did not select it.

    `chosen_in` is the proportion of selections that chose it, `selections` are the indices of these in
    `selection_halves`. `p` has Holm's correction for all heads.
    """

    head: Head
    label: str
    accuracy: Estimate
    baseline: Estimate
    gain: Estimate
    p: float
    chosen_in: float
    is_confirmed: bool
    selections: NDArray[np.intp]


def selection_halves(counts: LinkCounts, seed: int) -> BoolArray:
    """(selection, unit) the sentences that a function is selected on: first halves of all splits, then second ones."""
    halves = random_halves(counts.unit_texts, seed=seed)
    return np.concatenate([halves, ~halves])


def assign_functions(
    counts: LinkCounts, thresholds: FunctionThresholds, *, min_examples: int, seed: int
) -> list[HeadFunction]:
    """For every head the function it comes closest to on one half, scored on the other, over many random halves.

    A function is confirmed if at least half of the selections chose it, its held-out accuracy reaches the threshold as
    well, the interval of that lies above that of the baseline, and a paired test over sentences is significant.
    """
    halves = selection_halves(counts, seed)
    baselines = baseline_correct(counts)
    labels: list[int] = np.flatnonzero(counts.total.sum(0) >= min_examples).tolist()
    selected = _select_functions(counts, baselines, halves, labels, thresholds)
    if (selected < 0).all():
        return []
    heads = [Head(layer, head) for layer, head in np.ndindex(*counts.correct.shape[1:3])]
    functions = [
        _score_function(counts, baselines, head, selected[:, index], halves) for index, head in enumerate(heads)
    ]
    p_values = holm(np.array([function.p for function in functions])).tolist()
    return [
        replace(function, p=p, is_confirmed=_is_confirmed(function, p, thresholds))
        for function, p in zip(functions, p_values, strict=True)
    ]


def _is_confirmed(function: HeadFunction, p: float, thresholds: FunctionThresholds) -> bool:
    accuracy, baseline = function.accuracy, function.baseline
    return (
        function.chosen_in >= MIN_CHOSEN
        and bool(thresholds.shortfall(function.label, accuracy.value, baseline.value) <= 0)
        and accuracy.clearly_above(baseline)
        and p < SIGNIFICANCE_LEVEL
    )


def baseline_correct(counts: LinkCounts) -> Array:
    """(unit, label) correct answers of the baseline of each label.

    The baseline of a position is chance, since a fixed offset is the function itself. That of the rarest word may also
    be the word split into most tokens, to which uniform attention gives most. The best offset is selected on all
    sentences, which can only favour the baseline.
    """
    baselines = {"positional": CHANCE, "syntactic": FIXED_OFFSET, "rarest word": GUESSED_RAREST_WORD}
    correct = np.zeros(counts.total.shape)
    for label, name in enumerate(counts.labels):
        baseline = counts.baseline_correct[baselines[function_kind(name)]][..., label]
        correct[:, label] = baseline[:, int(baseline.sum(0).argmax())]
    return correct


def _select_functions(
    counts: LinkCounts,
    baselines: Array,
    all_halves: BoolArray,
    labels: Sequence[int],
    thresholds: FunctionThresholds,
) -> NDArray[np.intp]:
    """(selection, head) the label selected on each half; -1 if none has examples in both halves.

    It is the one with the lowest p value among those that reach their threshold, positions first; or the closest.
    """
    shape = len(all_halves), int(np.prod(counts.correct.shape[1:3]))
    selected, best_rank, best_value = np.full(shape, -1, np.intp), np.full(shape, 3), np.full(shape, np.inf)
    for label in labels:
        units = counts.total[:, label] > 0
        halves, total = all_halves[:, units].astype(np.float64), counts.total[units, label].astype(np.float64)
        correct, baseline = counts.candidates(label)[units].astype(np.float64), baselines[units, label, None]
        n = halves @ total
        accuracies, baseline_accuracies = (ratio(halves @ values, n[:, None]) for values in (correct, baseline))
        shortfalls = thresholds.shortfall(counts.labels[label], accuracies, baseline_accuracies)
        is_reached = (shortfalls <= 0) & (halves.sum(1, keepdims=True) > 1)
        rank = np.where(is_reached, 0 if function_kind(counts.labels[label]) == "positional" else 1, 2)
        value = (
            np.where(is_reached, _half_p_values(halves, correct - baseline), shortfalls)
            if is_reached.any()
            else shortfalls
        )
        is_better = (rank < best_rank) | ((rank == best_rank) & (value < best_value))
        is_better &= ((n > 0) & (n < total.sum()))[:, None]
        selected[is_better], best_rank[is_better], best_value[is_better] = label, rank[is_better], value[is_better]
    return selected


def _half_p_values(halves: FloatArray, differences: FloatArray) -> FloatArray:
    """(half, head) p values of Student's t test of (unit, head) differences, but never below 2 ** -n.

    n is the number of differences other than 0; the values rank functions only (see `paired_test`).
    """
    n = halves.sum(1, keepdims=True)
    mean = halves @ differences / np.maximum(n, 1)
    variance = (halves @ differences**2 / np.maximum(n, 1) - mean**2).clip(TOLERANCE) / np.maximum(n - 1, 1)
    n_nonzero = halves @ (np.abs(differences) > TOLERANCE).astype(np.float64)
    return np.maximum(stdtr(np.maximum(n - 1, 1), -mean / np.sqrt(variance)), 0.5**n_nonzero)


def _score_function(
    counts: LinkCounts, baselines: Array, head: Head, selected: NDArray[np.intp], halves: BoolArray
) -> HeadFunction:
    """The label that was selected most often, scored on the other halves; p without correction, not confirmed yet.

    Each split tests both halves together; a half counts as no gain if the other half selected another label.
    """
    label = int(np.bincount(selected[selected >= 0]).argmax())
    selections = np.flatnonzero(selected == label)
    held_out, n_selections = ~halves[selections], int((selected >= 0).sum())
    total, correct = (
        values.astype(np.float64) for values in (counts.total[:, label], counts.correct[(slice(None), *head, 0, label)])
    )
    baseline, is_selected = baselines[:, label], selected == label
    # (split, unit) whether the label was selected on the other half
    is_held_out = np.where(halves[:N_SPLITS], is_selected[N_SPLITS:, None], is_selected[:N_SPLITS, None])
    return HeadFunction(
        head,
        counts.labels[label],
        held_out_ratio(held_out, correct, total),
        held_out_ratio(held_out, baseline, total),
        held_out_ratio(held_out, correct - baseline, total, lowest=-1.0),
        cross_fitted_p(np.where(total > 0, is_held_out * (correct - baseline), np.nan)),
        len(selections) / n_selections,
        is_confirmed=False,
        selections=selections,
    )
