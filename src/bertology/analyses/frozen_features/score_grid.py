"""Test scores of classifiers on frozen features, by feature, classifier and training size; every cell is cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset
from bertology.analyses.frozen_features.downstream_models import DownstreamClassifier, fit_predict
from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import Counts
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous, ratio

CorrectTotal = FloatArray
"""(..., 2) counts of test examples, mostly (seed, example, 2): the correct ones, and the total."""


@dataclass(frozen=True)
class ScoreGrid:
    """A dataset, and the cache for finished cells."""

    dataset: FrozenFeatureDataset
    cache: AnalysisCache

    def run(
        self, vectors: Sequence[WordFeatures], classifiers: Sequence[DownstreamClassifier], sizes: Sequence[int]
    ) -> CorrectTotal:
        """(seed, example, feature, classifier, size, 2) counts of all cells."""
        total = len(vectors) * len(classifiers) * len(sizes)
        meter = self.cache.progress_meter(f"training {total} classifiers, {len(self.dataset.seed_splits)} seeds each")
        arguments = [
            self._cell_arguments(features, classifier, size)
            for features in vectors
            for classifier in classifiers
            for size in sizes
        ]
        counts = self.cache.call_all(train_and_count, arguments, meter=meter)
        stacked = np.stack([np.array(cell) for cell in counts], 2)
        return stacked.reshape(*stacked.shape[:2], len(vectors), len(classifiers), len(sizes), 2)

    def _cell_arguments(self, vectors: WordFeatures, classifier: DownstreamClassifier, size: int) -> dict[str, Any]:
        return {"dataset": self.dataset, "features": vectors, "classifier": classifier, "train_size": size}

    def baselines(self, size: int) -> Mapping[str, CorrectTotal]:
        """(seed, example, 2) counts of baselines without features, each from the training examples of a seed."""
        counts: dict[str, list[CorrectTotal]] = {}
        for split in self.dataset.seed_splits:
            train = [self.dataset.train[index] for index in split.train[:size]]
            for name, predicted in self.dataset.task.baseline_predictions(train, self.dataset.test).items():
                counts.setdefault(name, []).append(_count_correct(self.dataset, predicted))
        return {name: np.stack(by_seed) for name, by_seed in counts.items()}


def train_and_count(
    dataset: FrozenFeatureDataset, features: WordFeatures, classifier: DownstreamClassifier, train_size: int
) -> list[list[list[float]]]:
    """[seed][example][correct, total] after training on the first `train_size` examples of each seed."""
    predictions = fit_predict(dataset, features, classifier, train_size)
    return [_count_correct(dataset, predicted).tolist() for predicted in predictions]


def _count_correct(dataset: FrozenFeatureDataset, predicted: list[Any]) -> CorrectTotal:
    counts = dataset.task.count_correct(dataset.test, predicted)
    return np.stack([counts.correct, counts.total], -1)


def score_from_counts(correct_total: CorrectTotal) -> FloatArray:
    """(...) the score from (..., 2) counts; 0 if the total is 0."""
    return ratio(correct_total[..., 0], correct_total[..., 1])


def score_with_interval(correct_total: CorrectTotal, *, seed: int) -> Estimates:
    """(...) scores from (seed, example, ..., 2) counts, with intervals over examples and seeds."""
    return exact_where_unanimous(bootstrap_sentences_and_seeds(correct_total, score_from_counts, seed=seed))


def counts_by_seed(correct_total: CorrectTotal) -> list[Counts]:
    """The counts of each seed, from (seed, example, 2)."""
    return [Counts(counts[..., 0], counts[..., 1]) for counts in correct_total]
