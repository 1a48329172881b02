"""Matthews correlation by category for several predictions of the same inference pairs, and their differences.

Pairs with the same hypothesis are resampled together, as they were written as a set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.arrays import FloatArray, IntArray
from bertology.corpus.example import Example
from bertology.corpus.readers.glue_diagnostic import CATEGORIES, LABELS, example_categories
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds
from bertology.results.measured_shape import change_measure

PredictionsByModel = Mapping[str, Sequence[Sequence[str]]]
"""For each classifier or task head: for each seed the label of every pair."""

ALL = "all pairs"
WORD_OVERLAP = "word overlap"
MIN_HYPOTHESES = 5
"""Groups with fewer hypotheses get the full range of the measure as interval."""


class PairGroup(NamedTuple):
    """A named subset of the pairs."""

    name: str
    indices: tuple[int, ...]


def category_groups(examples: Sequence[Example], *, subtypes: bool) -> list[PairGroup]:
    """All pairs, the pairs of each category and, with `subtypes`, those of each sub-type; no empty groups."""
    groups: dict[str, list[int]] = {ALL: list(range(len(examples)))}
    by_example = [example_categories(example) for example in examples]
    for category, official in CATEGORIES.items():
        groups[category] = [index for index, categories in enumerate(by_example) if category in categories]
        if subtypes:
            others = {name for categories in by_example for name in categories.get(category, ())} - set(official)
            for name in (*official, *sorted(others)):
                groups[f"{category}: {name}"] = [
                    index for index, categories in enumerate(by_example) if name in categories.get(category, ())
                ]
    return [PairGroup(name, tuple(indices)) for name, indices in groups.items() if indices]


def matthews(counts: NDArray[np.number]) -> FloatArray:
    """(...) Matthews correlation, for any number of classes (Gorodkin's R_K), from (..., gold, predicted) counts.

    Constant predictions score 0. NaN if all gold labels are the same, or if there are none.
    """
    cells = np.asarray(counts, np.float64)
    total = cells.sum((-2, -1))
    gold, predicted = cells.sum(-1), cells.sum(-2)
    correct = np.trace(cells, axis1=-2, axis2=-1)
    gold_variance = total**2 - (gold**2).sum(-1)
    predicted_variance = total**2 - (predicted**2).sum(-1)
    product = np.sqrt(gold_variance.clip(0) * predicted_variance.clip(0))
    covariance = correct * total - (gold * predicted).sum(-1)
    correlation = np.divide(
        covariance, product, out=np.zeros_like(covariance), where=product > 1e-9 * np.maximum(total, 1) ** 2
    )
    return np.where(gold_variance > 0, correlation, np.nan)


def matthews_by_group(
    examples: Sequence[Example], predictions: PredictionsByModel, groups: Sequence[PairGroup], *, seed: int
) -> tuple[dict[str, Estimates], dict[str, Estimates]]:
    """(group,) Matthews correlation of each classifier, -1 to 1, and all pairwise differences.

    Confusion matrices are summed over seeds; differences are paired by example and seed. Groups with fewer than five
    hypotheses get the full range of the measure as interval.
    """
    names = list(predictions)
    pairs = list(combinations(range(len(names)), 2))
    confusions = np.stack([_confusions(examples, by_seed) for by_seed in predictions.values()], 2)

    def statistic(counts: FloatArray) -> FloatArray:
        scores = matthews(counts)
        differences = [scores[..., first, None] - scores[..., second, None] for first, second in pairs]
        return np.concatenate([scores, *differences], -1)

    limits = np.array([1.0] * len(names) + [2.0] * len(pairs))
    estimates = _estimate_groups(examples, confusions, groups, statistic, limits, seed)
    differences = [f"{names[first]} - {names[second]}" for first, second in pairs]
    columns = {name: estimates[:, column] for column, name in enumerate([*names, *differences])}
    return {name: columns[name] for name in names}, {name: columns[name] for name in differences}


def matthews_changes(
    examples: Sequence[Example],
    predictions: PredictionsByModel,
    half_trained: PredictionsByModel,
    groups: Sequence[PairGroup],
    *,
    seed: int,
) -> dict[str, Estimates]:
    """(group,) what the second half of the training data adds to the differences of classifiers trained on both."""
    names = list(half_trained)
    pairs = list(combinations(range(len(names)), 2))
    if not pairs:
        return {}
    runs = [by_model[name] for by_model in (predictions, half_trained) for name in names]
    confusions = np.stack([_confusions(examples, by_seed) for by_seed in runs], 2)

    def statistic(counts: FloatArray) -> FloatArray:
        scores = matthews(counts)
        gains = scores[..., : len(names)] - scores[..., len(names) :]
        return np.stack([gains[..., first] - gains[..., second] for first, second in pairs], -1)

    estimates = _estimate_groups(examples, confusions, groups, statistic, np.full(len(pairs), 4.0), seed)
    return {
        change_measure(f"{names[first]} - {names[second]}"): estimates[:, column]
        for column, (first, second) in enumerate(pairs)
    }


def _confusions(examples: Sequence[Example], predictions: Sequence[Sequence[str]]) -> FloatArray:
    """(seed, pair, gold, predicted) one-hot confusion matrices."""
    confusions = np.zeros((len(predictions), len(examples), len(LABELS), len(LABELS)))
    for seed, predicted in enumerate(predictions):
        for index, (example, label) in enumerate(zip(examples, predicted, strict=True)):
            confusions[seed, index, LABELS.index(str(example.label)), LABELS.index(label)] = 1
    return confusions


def _estimate_groups(
    examples: Sequence[Example],
    confusions: FloatArray,
    groups: Sequence[PairGroup],
    statistic: Callable[[FloatArray], FloatArray],
    limits: FloatArray,
    seed: int,
) -> Estimates:
    """(group, number) a statistic in each group; `limits` are the highest values that its numbers can have."""
    hypothesis_ids = np.unique([example.segments[1].text for example in examples], return_inverse=True)[1]
    return Estimates.stack(
        [_estimate_group(examples, confusions, hypothesis_ids, group, statistic, limits, seed) for group in groups]
    )


def _estimate_group(
    examples: Sequence[Example],
    confusions: FloatArray,
    hypothesis_ids: IntArray,
    group: PairGroup,
    statistic: Callable[[FloatArray], FloatArray],
    limits: FloatArray,
    seed: int,
) -> Estimates:
    width = len(limits)
    indices = np.array(group.indices)
    if len({examples[index].label for index in group.indices}) < 2:
        return Estimates.empty(width)
    group_ids = hypothesis_ids[indices]
    by_hypothesis = [confusions[:, indices[group_ids == number]].sum(1) for number in np.unique(group_ids)]
    estimates = bootstrap_sentences_and_seeds(np.stack(by_hypothesis, 1), statistic, seed=seed)
    low, high = estimates.low, estimates.high
    if len(by_hypothesis) < MIN_HYPOTHESES:
        # Resamples of so few hypotheses are nearly identical, and their interval would be too narrow.
        low, high = -limits, limits
    return Estimates(value=estimates.value, low=low, high=high, n=np.full(width, len(indices), np.int64))


def hypothesis_only_features(vectors: WordFeatures) -> WordFeatures:
    """Features of pairs (premise and hypothesis in turn) with the premises set to zero."""
    by_sentence = tuple(
        np.zeros_like(rows[:1]) if index % 2 == 0 else rows for index, rows in enumerate(vectors.by_sentence)
    )
    return WordFeatures(vectors.name, by_sentence, vectors.counts)


def overlap_features(examples: Sequence[Example]) -> WordFeatures:
    """Word overlap and lengths of each pair, as the only vector of its hypothesis.

    Five numbers: the proportion of hypothesis words in the premise, whether it is 1, both lengths, and the number of
    shared words.
    """
    rows: list[NDArray[np.float32]] = []
    for example in examples:
        first, second = ({word.lower() for word in part.words if word[0].isalnum()} for part in example.segments)
        overlap = len(first & second) / max(1, len(second))
        lengths = [len(segment) for segment in example.segments]
        values = [overlap, float(overlap == 1), *lengths, len(first & second)]
        rows += [np.zeros((1, len(values)), np.float32), np.array([values], np.float32)]
    return WordFeatures(WORD_OVERLAP, tuple(rows))
