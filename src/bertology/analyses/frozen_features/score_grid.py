"""Test scores of classifiers on frozen features, by feature, classifier and training size; every cell is cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset
from bertology.analyses.frozen_features.downstream_models import DownstreamClassifier, fit_predict
from bertology.analyses.frozen_features.predictions import classifier_key
from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.analyses.run import AnalysisCache
from bertology.arrays import FloatArray
from bertology.estimates.resampling import ratio

CorrectTotal = FloatArray
"""(..., 2) counts of test examples, mostly (seed, example, 2): the correct ones, and the total."""

FORMAT = 2


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
        cells: list[CorrectTotal] = []
        for features in vectors:
            for classifier in classifiers:
                for size in sizes:
                    cells.append(self.cell(features, classifier, size))
                    meter(len(cells), total)
        stacked = np.stack(cells, 2)
        return stacked.reshape(*stacked.shape[:2], len(vectors), len(classifiers), len(sizes), 2)

    def cell(self, vectors: WordFeatures, classifier: DownstreamClassifier, size: int) -> CorrectTotal:
        """(seed, example, 2) counts after training on `size` examples, from the cache or computed now."""
        key = {
            "quantity": "correct and total",
            "format": FORMAT,
            "train_size": size,
            **classifier_key(self.dataset, vectors, classifier),
        }

        def compute() -> list[Any]:
            predictions = fit_predict(self.dataset, vectors, classifier, size)
            return [self._count_correct(predicted).tolist() for predicted in predictions]

        return np.array(self.cache.get_or_compute(key, compute))

    def baselines(self, size: int) -> Mapping[str, CorrectTotal]:
        """(seed, example, 2) counts of baselines without features, each from the training examples of a seed."""
        counts: dict[str, list[CorrectTotal]] = {}
        for split in self.dataset.seed_splits:
            train = [self.dataset.train[index] for index in split.train[:size]]
            for name, predicted in self.dataset.task.baseline_predictions(train, self.dataset.test).items():
                counts.setdefault(name, []).append(self._count_correct(predicted))
        return {name: np.stack(by_seed) for name, by_seed in counts.items()}

    def _count_correct(self, predicted: list[Any]) -> CorrectTotal:
        counts = self.dataset.task.count_correct(self.dataset.test, predicted)
        return np.stack([counts.correct, counts.total], -1)


def score_from_counts(correct_total: CorrectTotal) -> FloatArray:
    """(...) the score from (..., 2) counts; 0 if the total is 0."""
    return ratio(correct_total[..., 0], correct_total[..., 1])
