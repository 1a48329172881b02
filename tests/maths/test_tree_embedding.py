"""The embedding of a tree is exact; layouts keep what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.maths.spanning_trees import tree_depths, tree_distances
from bertology.maths.tree_embedding import in_plane, pythagorean, turned_onto

HEADS = (2, 2, -1, 5, 5, 2, 5)


def test_squared_distances_are_tree_distances_and_squared_lengths_depths() -> None:
    points = pythagorean(HEADS)
    apart = np.square(points[:, None] - points[None]).sum(-1)
    np.testing.assert_array_equal(apart, tree_distances(HEADS))
    np.testing.assert_array_equal(np.square(points).sum(1), tree_depths(HEADS))


def test_the_plane_is_that_of_principal_components() -> None:
    from sklearn.decomposition import PCA

    points = np.random.default_rng(0).normal(size=(12, 5)) * np.arange(1, 6)
    expected = PCA(2).fit_transform(points)
    found = in_plane(points)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(in_plane(points + 100), found, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2])
def test_few_points_have_a_place_too(count: int) -> None:
    found = in_plane(np.random.default_rng(0).normal(size=(count, 5)))
    assert found.shape == (count, 2)
    np.testing.assert_allclose(found[:, 1], 0, atol=1e-9)


def test_a_turned_copy_is_turned_back() -> None:
    points = np.random.default_rng(1).normal(size=(9, 2))
    points -= points.mean(0)
    angle = 0.7
    turned = points @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) * [1, 1] + 3
    mirrored = turned * [1, -1]
    for copy in (turned, mirrored):
        np.testing.assert_allclose(turned_onto(copy, points), points, atol=1e-9)
