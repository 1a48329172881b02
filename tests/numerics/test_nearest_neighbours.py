"""Nearest neighbours and centroids: as scikit-learn has them, and with ties settled in a way that can be told."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from bertology.numerics.nearest_neighbours import centroids, cosines, knn_predict, nearest_centroid_predict

WIDTH, KNOWN, CASES, CLASSES = 5, 40, 30, 3


def material(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    classes = generator.integers(CLASSES, size=KNOWN)
    return generator.normal(size=(CASES, WIDTH)), generator.normal(size=(KNOWN, WIDTH)), classes


@pytest.mark.parametrize("k", [1, 3, 7])
def test_neighbours_are_those_of_scikit_learn(k: int) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    cases, known, classes = material()
    fitted = cast("Any", KNeighborsClassifier)(k, metric="cosine").fit(known, classes)
    shares = np.sort(fitted.predict_proba(cases), 1)
    clear = shares[:, -1] > shares[:, -2]
    assert clear.sum() > CASES // 2
    found = knn_predict(cosines(cases, known), classes, CLASSES, k)
    np.testing.assert_array_equal(found[clear], fitted.predict(cases)[clear])


def test_centroids_are_those_of_scikit_learn() -> None:
    from sklearn.neighbors import NearestCentroid

    cases, known, classes = material(1)
    means = cast("Any", NearestCentroid)().fit(known, classes).centroids_
    np.testing.assert_allclose(centroids(known, classes, CLASSES), means)
    lengths = np.linalg.norm(cases, axis=1)[:, None] * np.linalg.norm(means, axis=1)
    nearest = (cases @ means.T / lengths).argmax(1)
    np.testing.assert_array_equal(nearest_centroid_predict(cases, known, classes, CLASSES), nearest)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_vectors_that_are_all_alike_give_the_most_frequent_class(k: int) -> None:
    classes = np.array([0, 1, 1, 2, 1, 0])
    alike = np.full((4, 6), 0.7) + 1e-9 * np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_array_equal(knn_predict(alike, classes, 3, k), 1)


def test_of_as_many_votes_the_first_to_reach_them_wins() -> None:
    classes = np.array([1, 0, 0, 1])
    similarities = np.array([[0.9, 0.8, 0.7, 0.6], [0.6, 0.8, 0.7, 0.9]])
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 4), [0, 0])  # class 0 is complete at 0.7
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 2), [1, 1])  # a tie: 0.9 comes before 0.8
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 9), [0, 0])  # no more than there are


def test_a_vector_of_zeros_is_like_nothing() -> None:
    np.testing.assert_array_equal(cosines(np.zeros((1, 2)), np.ones((3, 2))), 0.0)
