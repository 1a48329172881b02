"""Cached predictions of classifiers on frozen features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset
from bertology.analyses.frozen_features.downstream_models import SETTINGS, DownstreamClassifier, fit_predict
from bertology.analyses.frozen_features.extractors import FeatureExtractor
from bertology.analyses.frozen_features.word_features import WordFeatures, extract_cached
from bertology.analyses.run import AnalysisCache

SeedPredictions = list[list[Any]]
"""For each seed the prediction for every test example: a label, or one label per word."""
FORMAT = 2


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
) -> list[SeedPredictions]:
    """Predictions of a classifier on each feature, trained on as many examples as all seeds have; cached."""
    meter = cache.progress_meter(f"training {len(vectors)} classifiers, {len(dataset.seed_splits)} seeds each")
    predictions: list[SeedPredictions] = []
    for features in vectors:
        key = {"quantity": "predictions", "format": FORMAT, **classifier_key(dataset, features, classifier)}
        compute = partial(fit_predict, dataset, features, classifier, dataset.max_train_size)
        predictions.append(cache.get_or_compute(key, compute))
        meter(len(predictions), len(vectors))
    return predictions


def classifier_key(
    dataset: FrozenFeatureDataset, vectors: WordFeatures, classifier: DownstreamClassifier
) -> dict[str, Any]:
    """The part of a cache key that identifies dataset, feature, classifier and seeds."""
    from bertology.training.data_split import content_hash

    return {
        "features": vectors.fingerprint,
        "task": [dataset.task.name, list(dataset.task.labels), dataset.task.metric],
        "train": content_hash(dataset.train),
        "test": content_hash(dataset.test),
        "classifier": [classifier, SETTINGS[classifier]],
        "seeds": [split.seed for split in dataset.seed_splits],
    }
