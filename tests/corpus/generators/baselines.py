"""Accuracy of linear models on bags of words, for tests that stimuli have no surface cues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from bertology.arrays import Array, FloatArray


def bags(texts: Sequence[Sequence[str]]) -> FloatArray:
    """Return the presence of each word in each text."""
    columns = {word: column for column, word in enumerate(sorted({w.lower() for text in texts for w in text}))}
    counts = np.zeros((len(texts), len(columns)))
    for row, text in enumerate(texts):
        counts[row, [columns[word.lower()] for word in text]] = 1
    return counts


def accuracy(features: FloatArray, labels: Sequence[str]) -> float:
    """Return the accuracy of logistic regression with two-fold cross-validation."""
    gold = np.asarray(labels)
    return float(np.mean(np.concatenate([model.predict(x) == y for model, x, y in _folds(features, gold)])))


def choice_accuracy(features: FloatArray, is_correct: Sequence[bool], n_options: int) -> float:
    """Return the accuracy of choosing the option that logistic regression scores highest; rows are options."""
    gold = np.asarray(is_correct)
    correct = [
        np.argmax(model.decision_function(x).reshape(-1, n_options), axis=1)
        == np.argmax(y.reshape(-1, n_options), axis=1)
        for model, x, y in _folds(features, gold, n_options)
    ]
    return float(np.mean(np.concatenate(correct)))


def _folds(
    features: FloatArray, gold: Array, group_size: int = 1
) -> list[tuple[LogisticRegression, FloatArray, Array]]:
    """Return a model trained on each half, with features and labels of the other half."""
    std = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(std > 0, std, 1)
    first = np.arange(len(gold)) < len(gold) // (2 * group_size) * group_size
    with threadpool_limits(1):
        models = [LogisticRegression(C=0.01, max_iter=300, tol=1e-3).fit(scaled[h], gold[h]) for h in (first, ~first)]
    return [(models[0], scaled[~first], gold[~first]), (models[1], scaled[first], gold[first])]
