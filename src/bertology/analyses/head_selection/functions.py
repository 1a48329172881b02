"""Functions of heads after Voita et al. (2019): a fixed position, a dependency relation, the rarest word.

Each function is a set of gold links (see `gold_links`): a head has the function if the word it attends to most is the
target. Functions are nominated on one half of the sentences and confirmed on the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertology.analyses.head_selection.gold_links import CHANCE, FIXED_OFFSET, OFFSETS, GoldLink, LinkCounts
from bertology.analyses.head_selection.selection import SIGNIFICANCE_LEVEL, selection_half
from bertology.analyses.word_relations import segment_of_words
from bertology.arrays import Array, BoolArray
from bertology.encoder.token_batch import RecordedInput, word_annotations, word_governors
from bertology.estimates.estimate import Estimate
from bertology.estimates.hypothesis_tests import holm, paired_t_test
from bertology.estimates.resampling import bootstrap_ratio
from bertology.results.shapes import Head

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
    recorded_input: RecordedInput, word_counts: Mapping[str, int], frequent_words: frozenset[str]
) -> list[GoldLink]:
    """The links of all functions in an input; `frequent_words` never count as the rarest word."""
    return [
        *_position_links(recorded_input),
        *_dependency_links(recorded_input),
        *_rarest_word_links(recorded_input, word_counts, frequent_words),
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
    recorded_input: RecordedInput, word_counts: Mapping[str, int], frequent_words: frozenset[str]
) -> list[GoldLink]:
    """From each word to the rarest other word of the input, unless that is a frequent word."""
    forms = [word.lower() for word in recorded_input.text.words]
    present = sorted({word for word in recorded_input.tokens.word_ids.tolist() if word >= 0})
    lowest = min((word_counts[forms[word]] for word in present), default=0)
    rarest = [word for word in present if word_counts[forms[word]] == lowest and forms[word] not in frequent_words]
    return [
        GoldLink(word, tuple(target for target in rarest if target != word), (RAREST_WORD,), word)
        for word in present
        if set(rarest) - {word}
    ]


def word_frequencies(texts: Sequence[Sequence[str]], n_frequent: int) -> tuple[Mapping[str, int], frozenset[str]]:
    """The count of each lower-cased word, and the `n_frequent` most frequent words."""
    counts = Counter(word.lower() for words in texts for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return counts, frozenset(ranked[:n_frequent])


@dataclass(frozen=True)
class FunctionThresholds:
    """Minimum accuracy of a position, gain over the best fixed offset for a relation, accuracy for the rarest word."""

    positional: float = 0.9
    syntactic: float = 0.1
    rare_word: float = 0.5

    def shortfall(self, label: str, accuracy: float, baseline: float) -> float:
        """The distance below the threshold; 0 or less if it is reached."""
        match function_kind(label):
            case "positional":
                return self.positional - accuracy
            case "syntactic":
                return baseline + self.syntactic - accuracy
            case "rarest word":
                return max(self.rare_word - accuracy, baseline - accuracy)


@dataclass(frozen=True)
class HeadFunction:
    """The function nominated for a head on one half of the sentences, and its scores on the other half."""

    head: Head
    label: str
    accuracy: Estimate
    baseline: Estimate
    p: float
    is_confirmed: bool


def assign_functions(
    counts: LinkCounts, thresholds: FunctionThresholds, *, min_examples: int, seed: int
) -> list[HeadFunction]:
    """For every head the function it comes closest to on one half, evaluated on the other half.

    A function is confirmed if the other half reaches its threshold as well, the interval of the accuracy lies above
    that of the baseline, and a paired t test over sentences is significant after Holm's correction for all nominated
    heads.
    """
    selection_mask = selection_half(counts.unit_texts, seed)
    in_both_halves = counts.total[selection_mask].any(0) & counts.total[~selection_mask].any(0)
    labels: list[int] = np.flatnonzero((counts.total.sum(0) >= min_examples) & in_both_halves).tolist()
    if not labels:
        return []
    baselines = baseline_correct(counts, selection_mask)
    accuracies, baseline_accuracies = (
        correct[selection_mask].sum(0) / np.maximum(1, counts.total[selection_mask].sum(0))
        for correct in (counts.correct[:, :, :, 0], baselines)
    )
    selection_p = _p_values(counts, baselines, selection_mask)
    heads = [Head(layer, head) for layer, head in np.ndindex(*accuracies.shape[:2])]
    nominated = [
        _nominate(accuracies[head], baseline_accuracies, selection_p[head], counts.labels, labels, thresholds)
        for head in heads
    ]
    correct = np.stack(
        [counts.correct[(slice(None), *head, 0, label)] for head, label in zip(heads, nominated, strict=True)], 1
    )
    total, head_baselines = counts.total[:, nominated].astype(np.float64), baselines[:, nominated]
    scores = bootstrap_ratio(correct[~selection_mask], total[~selection_mask], seed=seed)
    baseline_scores = bootstrap_ratio(head_baselines[~selection_mask], total[~selection_mask], seed=seed)
    differences = np.where(total > 0, correct - head_baselines, np.nan)[~selection_mask]
    reached = [
        thresholds.shortfall(counts.labels[label], float(accuracies[(*head, label)]), float(baseline_accuracies[label]))
        <= 0
        for head, label in zip(heads, nominated, strict=True)
    ]
    p_values = holm(np.where(reached, paired_t_test(differences), np.nan))
    functions: list[HeadFunction] = []
    for index, (head, label) in enumerate(zip(heads, nominated, strict=True)):
        score, baseline, p = scores[index], baseline_scores[index], float(p_values[index])
        holds = thresholds.shortfall(counts.labels[label], score.value, baseline.value) <= 0
        confirmed = reached[index] and holds and score.clearly_above(baseline) and p < SIGNIFICANCE_LEVEL
        functions.append(HeadFunction(head, counts.labels[label], score, baseline, p, confirmed))
    return functions


def baseline_correct(counts: LinkCounts, selection_mask: BoolArray) -> Array:
    """(unit, label) correct answers of the baseline of each label, its offset selected on the first half.

    The baseline of a position is chance, since a fixed offset is the function itself.
    """
    correct = np.zeros(counts.total.shape)
    for label, name in enumerate(counts.labels):
        baseline = counts.baseline_correct[CHANCE if function_kind(name) == "positional" else FIXED_OFFSET][..., label]
        correct[:, label] = baseline[:, int(baseline[selection_mask].sum(0).argmax())]
    return correct


def _p_values(counts: LinkCounts, baselines: Array, selection_mask: BoolArray) -> Array:
    """(layer, head, label) p values of a gain over the baseline on the first half."""
    p_values: list[Array] = []
    for label in range(len(counts.labels)):
        units = selection_mask & (counts.total[:, label] > 0)
        p_values.append(paired_t_test(counts.correct[units, :, :, 0, label] - baselines[units, label, None, None]))
    return np.stack(p_values, -1)


def _nominate(
    accuracies: Array,
    baselines: Array,
    p_values: Array,
    names: Sequence[str],
    labels: Sequence[int],
    thresholds: FunctionThresholds,
) -> int:
    """The function with the lowest p value among those that reach their threshold, positions first; or the closest."""
    shortfalls = {n: thresholds.shortfall(names[n], float(accuracies[n]), float(baselines[n])) for n in labels}
    reached = [n for n in labels if shortfalls[n] <= 0 and np.isfinite(p_values[n])]
    positions = [n for n in reached if function_kind(names[n]) == "positional"]
    if reached:
        return min(positions or reached, key=lambda n: (p_values[n], n))
    return min(labels, key=lambda n: (shortfalls[n], n))
