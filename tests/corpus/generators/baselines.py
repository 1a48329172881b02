"""What a linear model on a bag of words gets from part of an item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits


def bags(texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Which words each text holds."""
    places = {word: place for place, word in enumerate(sorted({w.lower() for text in texts for w in text}))}
    counts = np.zeros((len(texts), len(places)))
    for row, text in enumerate(texts):
        counts[row, [places[word.lower()] for word in text]] = 1
    return counts


def accuracy(features: NDArray[np.float64], labels: Sequence[str]) -> float:
    """Accuracy of logistic regression, trained on either half and tested on the other."""
    gold = np.asarray(labels)
    return float(np.mean(np.concatenate([model.predict(x) == y for model, x, y in _halves(features, gold)])))


def picked(features: NDArray[np.float64], right: Sequence[bool], options: int) -> float:
    """How often the option that logistic regression finds likeliest is right; rows are options, item by item."""
    gold = np.asarray(right)
    hits = [
        np.argmax(model.decision_function(x).reshape(-1, options), axis=1) == np.argmax(y.reshape(-1, options), axis=1)
        for model, x, y in _halves(features, gold, options)
    ]
    return float(np.mean(np.concatenate(hits)))


def _halves(
    features: NDArray[np.float64], gold: NDArray[Any], together: int = 1
) -> list[tuple[LogisticRegression, NDArray[np.float64], NDArray[Any]]]:
    """A model trained on each half, with the other half to test it on."""
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    first = np.arange(len(gold)) < len(gold) // (2 * together) * together
    with threadpool_limits(1):
        fitted = [LogisticRegression(C=0.01, max_iter=300, tol=1e-3).fit(scaled[h], gold[h]) for h in (first, ~first)]
    return [(fitted[0], scaled[~first], gold[~first]), (fitted[1], scaled[first], gold[first])]
