"""Planted groups are separated, shuffled groups are not; silhouettes equal those of scikit-learn."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_samples

from bertology.analyses.attention.head_clusters.jensen_shannon import (
    group_separation,
    mean_distance_to_groups,
    permutation_p_value,
    permuted_separation,
)
from bertology.arrays import FloatArray

GROUPS = np.repeat(np.arange(4), 5)


def distances(apart: float, seed: int = 0) -> FloatArray:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(4, 3)) * apart
    return squareform(pdist(centres[GROUPS] + generator.normal(size=(20, 3))))


def test_silhouettes_equal_those_of_scikit_learn() -> None:
    given = distances(1.0)
    expected = np.asarray(silhouette_samples(given, GROUPS, metric="precomputed")).reshape(4, 5).mean(1)
    result = group_separation(mean_distance_to_groups(given, GROUPS), GROUPS)
    np.testing.assert_allclose(result.silhouette[:4], expected)
    np.testing.assert_allclose(result.silhouette[4], expected.mean())


def test_within_and_between_equal_direct_means() -> None:
    given = distances(1.0)
    result = group_separation(mean_distance_to_groups(given, GROUPS), GROUPS)
    same = GROUPS[:, None] == GROUPS
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(result.within[4], given[same & off].mean())
    np.testing.assert_allclose(result.between[4], given[~same].mean())
    second = GROUPS == 1
    np.testing.assert_allclose(result.between[1], given[second][:, ~second].mean())


def test_planted_groups_are_significant() -> None:
    for apart, likely in ((4.0, False), (0.0, True)):
        given = distances(apart)
        observed = group_separation(mean_distance_to_groups(given, GROUPS), GROUPS).difference
        p = permutation_p_value(observed, permuted_separation(given, GROUPS, seed=0, n_permutations=199).difference)
        assert (p[4] > 0.05) == likely
    assert p.min() > 0


def test_p_is_uniform_without_groups() -> None:
    result = [
        permutation_p_value(
            group_separation(mean_distance_to_groups(given, GROUPS), GROUPS).difference,
            permuted_separation(given, GROUPS, seed=1, n_permutations=49).difference,
        )[4]
        for given in (distances(0.0, seed) for seed in range(60))
    ]
    assert 0.35 < np.mean(result) < 0.65
    assert np.mean(np.array(result) <= 0.1) < 0.25


def test_equal_differences_count_as_large_whatever_the_rounding() -> None:
    """Two kinds of members, balanced in both groups: every permutation has at least this difference."""
    kind, groups = np.tile([0, 1], 4), np.repeat([0, 1], 4)
    given = (kind[:, None] != kind).astype(float)
    observed = group_separation(mean_distance_to_groups(given, groups), groups).difference
    for seed in range(5):
        rounded = given + np.random.default_rng(seed).uniform(-1e-8, 1e-8, size=given.shape)
        np.fill_diagonal(rounded, 0)
        chance = permuted_separation(rounded, groups, seed=3, n_permutations=99).difference
        np.testing.assert_allclose(permutation_p_value(observed, chance), 1)
