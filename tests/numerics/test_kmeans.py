"""k-means with the best silhouette finds the planted number of clusters; purity is counted per group."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.numerics.kmeans import kmeans_by_silhouette, purity


def test_the_planted_number_of_clusters_is_found() -> None:
    generator = np.random.default_rng(0)
    points = np.repeat(np.eye(4) * 20, 15, axis=0) + generator.normal(size=(60, 4))
    clusters = kmeans_by_silhouette(points, seed=0)
    assert clusters is not None and clusters.n_clusters == 4 and clusters.silhouette > 0.8
    assert kmeans_by_silhouette(points[:2], seed=0) is None


def test_purity_is_the_mean_over_groups_of_the_largest_cluster() -> None:
    labels = np.array([0, 0, 1, 1, 1])
    assert purity(labels, [np.array([0, 1]), np.array([1, 2, 3, 4])]) == pytest.approx((1 + 0.75) / 2)
