"""Cached predictions of classifiers on frozen features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset
from bertology.analyses.frozen_features.downstream_models import DownstreamClassifier, fit_predict
from bertology.analyses.frozen_features.extractors import FeatureExtractor
from bertology.analyses.frozen_features.word_features import WordFeatures, extract_cached

SeedPredictions = list[list[Any]]
"""For each seed the prediction for every test example: a label, or one label per word."""


def extract_all(
    dataset: FrozenFeatureDataset, extractors: Sequence[FeatureExtractor], cache: AnalysisCache
) -> list[WordFeatures]:
    """Each feature of all words of the dataset."""
    return [extract_cached(extractor, dataset.sentences, cache) for extractor in extractors]


def predict_all(
    dataset: FrozenFeatureDataset,
    vectors: Sequence[WordFeatures],
    classifier: DownstreamClassifier,
    cache: AnalysisCache,
    *,
    train_size: int,
) -> list[SeedPredictions]:
    """Predictions of a classifier on each feature, trained on the first `train_size` examples of each seed; cached."""
    meter = cache.progress_meter(f"training {len(vectors)} classifiers, {len(dataset.seed_splits)} seeds each")
    arguments = [
        {"dataset": dataset, "vectors": features, "classifier": classifier, "size": train_size} for features in vectors
    ]
    return cache.call_all(fit_predict, arguments, meter=meter)
