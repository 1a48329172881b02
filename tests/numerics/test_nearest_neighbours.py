"""Nearest neighbours and centroids equal those of scikit-learn, and ties are broken deterministically."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from bertology.numerics.nearest_neighbours import centroids, cosines, knn_predict, nearest_centroid_predict

WIDTH, N_TRAIN, N_TEST, N_CLASSES = 5, 40, 30, 3


def sample_vectors(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Test vectors, training vectors, and the classes of the training vectors."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(N_CLASSES, size=N_TRAIN)
    return generator.normal(size=(N_TEST, WIDTH)), generator.normal(size=(N_TRAIN, WIDTH)), classes


@pytest.mark.parametrize("k", [1, 3, 7])
def test_neighbours_are_those_of_scikit_learn(k: int) -> None:
    from sklearn.neighbors import KNeighborsClassifier

    test, train, classes = sample_vectors()
    expected = cast("Any", KNeighborsClassifier)(k, metric="cosine").fit(train, classes)
    votes = np.sort(expected.predict_proba(test), 1)
    is_clear = votes[:, -1] > votes[:, -2]
    assert is_clear.sum() > N_TEST // 2
    predicted = knn_predict(cosines(test, train), classes, N_CLASSES, k)
    np.testing.assert_array_equal(predicted[is_clear], expected.predict(test)[is_clear])


def test_centroids_are_those_of_scikit_learn() -> None:
    from sklearn.neighbors import NearestCentroid

    test, train, classes = sample_vectors(1)
    means = cast("Any", NearestCentroid)().fit(train, classes).centroids_
    np.testing.assert_allclose(centroids(train, classes, N_CLASSES), means)
    lengths = np.linalg.norm(test, axis=1)[:, None] * np.linalg.norm(means, axis=1)
    nearest = (test @ means.T / lengths).argmax(1)
    np.testing.assert_array_equal(nearest_centroid_predict(test, train, classes, N_CLASSES), nearest)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_equal_similarities_give_the_most_frequent_class(k: int) -> None:
    classes = np.array([0, 1, 1, 2, 1, 0])
    similarities = np.full((4, 6), 0.7) + 1e-9 * np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_array_equal(knn_predict(similarities, classes, 3, k), 1)


def test_with_equal_votes_the_class_that_reached_them_first_wins() -> None:
    classes = np.array([1, 0, 0, 1])
    similarities = np.array([[0.9, 0.8, 0.7, 0.6], [0.6, 0.8, 0.7, 0.9]])
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 4), [0, 0])  # class 0 has both votes at 0.7
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 2), [1, 1])  # a tie: 0.9 comes before 0.8
    np.testing.assert_array_equal(knn_predict(similarities, classes, 2, 9), [0, 0])  # k is larger than the training set


def test_a_vector_of_zeros_has_cosine_zero() -> None:
    np.testing.assert_array_equal(cosines(np.zeros((1, 2)), np.ones((3, 2))), 0.0)
