"""k-means with the number of clusters chosen by silhouette, and the purity of given groups in the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray

Labels = NDArray[np.intp]

MIN_CLUSTERS, MAX_CLUSTERS = 2, 10


@dataclass(frozen=True)
class KMeansClusters:
    """The cluster of each point, and the mean silhouette: 1 well separated, 0 no clusters (Rousseeuw 1987)."""

    labels: Labels
    silhouette: float

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return int(self.labels.max()) + 1


def kmeans_by_silhouette(
    points: NDArray[Any], *, seed: int, min_clusters: int = MIN_CLUSTERS, max_clusters: int = MAX_CLUSTERS
) -> KMeansClusters | None:
    """k-means in the full space with the k of the highest silhouette; None if there are too few points."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rotated = principal_axes(points)
    distances = _distances(rotated)
    candidates: list[KMeansClusters] = []
    for number in range(min_clusters, min(max_clusters, len(rotated) - 1) + 1):
        fitted = cast("Any", KMeans)(number, n_init=1, random_state=seed, max_iter=100).fit(rotated)
        labels = np.asarray(fitted.labels_, np.intp)
        if len(np.unique(labels)) == number:
            score = float(cast("Any", silhouette_score)(distances, labels, metric="precomputed"))
            candidates.append(KMeansClusters(labels, score))
    return max(candidates, key=lambda clusters: clusters.silhouette) if candidates else None


def principal_axes(points: NDArray[Any], max_axes: int | None = None) -> FloatArray:
    """The centred points along their principal axes: distances are unchanged, dimensions beyond the rank dropped."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    nonzero = values > 1e-6 * max(float(values[0]), 1e-300)
    rotated = (left * values)[:, nonzero]
    # The sign of an axis is arbitrary: the largest weight is made positive, so that rounding cannot flip it.
    signs = np.sign(right[nonzero][np.arange(nonzero.sum()), np.abs(right[nonzero]).argmax(1)])
    return (rotated * signs)[:, :max_axes]


def purity(labels: Labels, groups: Sequence[NDArray[np.intp]]) -> float:
    """Proportion of a group's points in its most frequent cluster, mean over groups: 1 if each is in one cluster."""
    proportions = [np.bincount(labels[group]).max() / len(group) for group in groups]
    return float(np.mean(proportions)) if proportions else float("nan")


def gaussian_reference(points: NDArray[Any], generator: np.random.Generator) -> FloatArray:
    """As many normal points with the same variance along the same axes: a reference without clusters."""
    rotated = principal_axes(points)
    return generator.normal(size=rotated.shape) * rotated.std(0)


def _distances(points: FloatArray) -> FloatArray:
    squares = np.square(points).sum(1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances
