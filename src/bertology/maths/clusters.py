"""k-means with the number of clusters that fits best, and how well groups known beforehand keep together in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

FEWEST, MOST = 2, 10


@dataclass(frozen=True)
class Clusters:
    """The cluster of each point, and the mean silhouette: 1 well apart, 0 no clusters (Rousseeuw 1987)."""

    labels: Labels
    silhouette: float

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.labels.max()) + 1


def best_clusters(points: NDArray[Any], *, seed: int, fewest: int = FEWEST, most: int = MOST) -> Clusters | None:
    """k-means in the full space with the k, from `fewest` to `most`, of the highest silhouette; None for few points."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    turned = principal_axes(points)
    distances = _distances(turned)
    found: list[Clusters] = []
    for number in range(fewest, min(most, len(turned) - 1) + 1):
        fitted = cast("Any", KMeans)(number, n_init=1, random_state=seed, max_iter=100).fit(turned)
        labels = np.asarray(fitted.labels_, np.intp)
        if len(np.unique(labels)) == number:
            score = float(cast("Any", silhouette_score)(distances, labels, metric="precomputed"))
            found.append(Clusters(labels, score))
    return max(found, key=lambda one: one.silhouette) if found else None


def principal_axes(points: NDArray[Any], most: int | None = None) -> Floats:
    """The centred points along their own axes of most variance: distances stay, dimensions beyond the rank go."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    kept = values > 1e-6 * max(float(values[0]), 1e-300)
    turned = (left * values)[:, kept]
    # The sign of an axis is arbitrary: its largest weight is made positive, so that rounding cannot turn it.
    signs = np.sign(right[kept][np.arange(kept.sum()), np.abs(right[kept]).argmax(1)])
    return (turned * signs)[:, :most]


def purity(labels: Labels, groups: Sequence[NDArray[np.intp]]) -> float:
    """Mean over groups of points of the share that lies in the group's most frequent cluster: 1 each in one cluster."""
    shares = [np.bincount(labels[group]).max() / len(group) for group in groups]
    return float(np.mean(shares)) if shares else float("nan")


def without_clusters(points: NDArray[Any], generator: np.random.Generator) -> Floats:
    """As many points with the same variance along the same axes, but normal: what has no clusters."""
    turned = principal_axes(points)
    return generator.normal(size=turned.shape) * turned.std(0)


def _distances(points: Floats) -> Floats:
    squares = np.square(points).sum(1)
    found = np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0))
    np.fill_diagonal(found, 0.0)
    return found
