"""Divergences equal those of scipy up to the documented error; planted groups are separated, shuffled ones are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon, pdist, squareform
from sklearn.metrics import silhouette_samples

from bertology.analyses.attention.head_clusters.jensen_shannon import (
    FREQUENCIES,
    HEADS_PER_TILE,
    WEIGHTS,
    group_separation,
    jensen_shannon,
    mean_distance_to_groups,
    permutation_p_value,
    permuted_separation,
)
from bertology.arrays import FloatArray


def random_rows(rows: int, heads: int, n_targets: int, sharpness: float, seed: int) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    return torch.from_numpy(
        generator.dirichlet(np.full(n_targets, 1 / sharpness), size=(rows, heads)).astype(np.float32)
    )


@pytest.mark.parametrize(("n_targets", "sharpness"), [(2, 1.0), (5, 0.1), (17, 1.0), (40, 30.0), (130, 3.0)])
def test_divergences_match_scipy(n_targets: int, sharpness: float) -> None:
    rows = random_rows(4, 9, n_targets, sharpness, seed=n_targets)
    result = jensen_shannon(rows)
    for row in range(4):
        for first in range(9):
            for second in range(9):
                expected = jensenshannon(rows[row, first].double(), rows[row, second].double()) ** 2
                assert float(result[row, first, second]) == pytest.approx(np.nan_to_num(expected), abs=7e-5)


def test_tiles_of_heads_are_joined() -> None:
    rows = random_rows(2, 2 * HEADS_PER_TILE + 7, 6, 2.0, seed=1)
    result = jensen_shannon(rows)
    torch.testing.assert_close(result, result.mT, rtol=0, atol=0)
    for first, second in [(0, 2 * HEADS_PER_TILE + 6), (HEADS_PER_TILE - 1, HEADS_PER_TILE), (HEADS_PER_TILE + 3, 5)]:
        expected = jensenshannon(rows[1, first].double(), rows[1, second].double()) ** 2
        assert float(result[1, first, second]) == pytest.approx(expected, abs=7e-5)


def test_the_extremes_are_exact() -> None:
    equal = random_rows(3, 1, 12, 5.0, seed=2).expand(3, 4, 12)
    torch.testing.assert_close(jensen_shannon(equal), torch.zeros(3, 4, 4), rtol=0, atol=2e-6)
    disjoint = torch.eye(5)[None]
    expected = np.log(2) * (1 - torch.eye(5))[None]
    torch.testing.assert_close(jensen_shannon(disjoint), expected.float(), rtol=0, atol=7e-5)


def test_targets_without_probability_change_nothing() -> None:
    rows = random_rows(2, 5, 9, 3.0, seed=3)
    padded = torch.nn.functional.pad(rows, (0, 4))
    torch.testing.assert_close(jensen_shannon(padded), jensen_shannon(rows), rtol=0, atol=2e-6)


def test_empty_input_gives_an_empty_result() -> None:
    assert jensen_shannon(torch.zeros(0, 3, 0)).shape == (0, 3, 3)


def test_the_approximation_error_is_below_its_bound() -> None:
    steps = np.linspace(0, 60, 60001)
    exact = (np.exp(steps / 2) * np.log1p(np.exp(-steps)) + np.exp(-steps / 2) * np.log1p(np.exp(steps))) / 2
    approximate = np.cos(np.outer(steps, FREQUENCIES)) @ np.array(WEIGHTS)
    assert (np.abs(exact - approximate) * np.exp(-steps / 2)).max() < 3.5e-5
    assert sum(WEIGHTS) == pytest.approx(np.log(2), abs=1e-7)


GROUPS = np.repeat(np.arange(4), 5)


def planted_distances(separation: float, seed: int = 0) -> FloatArray:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(4, 3)) * separation
    return squareform(pdist(centres[GROUPS] + generator.normal(size=(20, 3))))


def test_silhouettes_equal_those_of_scikit_learn() -> None:
    distances = planted_distances(1.0)
    expected = np.asarray(silhouette_samples(distances, GROUPS, metric="precomputed")).reshape(4, 5).mean(1)
    result = group_separation(mean_distance_to_groups(distances, GROUPS), GROUPS)
    np.testing.assert_allclose(result.silhouette[:4], expected)
    np.testing.assert_allclose(result.silhouette[4], expected.mean())


def test_within_and_between_equal_direct_means() -> None:
    distances = planted_distances(1.0)
    result = group_separation(mean_distance_to_groups(distances, GROUPS), GROUPS)
    same = GROUPS[:, None] == GROUPS
    off_diagonal = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(result.within[4], distances[same & off_diagonal].mean())
    np.testing.assert_allclose(result.between[4], distances[~same].mean())
    second = GROUPS == 1
    np.testing.assert_allclose(result.between[1], distances[second][:, ~second].mean())


def test_planted_groups_are_significant() -> None:
    for separation, by_chance in ((4.0, False), (0.0, True)):
        distances = planted_distances(separation)
        observed = group_separation(mean_distance_to_groups(distances, GROUPS), GROUPS).difference
        p = permutation_p_value(observed, permuted_separation(distances, GROUPS, seed=0, n_permutations=199).difference)
        assert (p[4] > 0.05) == by_chance
    assert p.min() > 0


def test_p_is_uniform_without_groups() -> None:
    p_values = [
        permutation_p_value(
            group_separation(mean_distance_to_groups(distances, GROUPS), GROUPS).difference,
            permuted_separation(distances, GROUPS, seed=1, n_permutations=49).difference,
        )[4]
        for distances in (planted_distances(0.0, seed) for seed in range(60))
    ]
    assert 0.35 < np.mean(p_values) < 0.65
    assert np.mean(np.array(p_values) <= 0.1) < 0.25


def test_ties_up_to_rounding_count_against_significance() -> None:
    """Two kinds of members, balanced in both groups: every permutation has at least this difference."""
    kind, groups = np.tile([0, 1], 4), np.repeat([0, 1], 4)
    distances = (kind[:, None] != kind).astype(float)
    observed = group_separation(mean_distance_to_groups(distances, groups), groups).difference
    for seed in range(5):
        rounded = distances + np.random.default_rng(seed).uniform(-1e-8, 1e-8, size=distances.shape)
        np.fill_diagonal(rounded, 0)
        permuted = permuted_separation(rounded, groups, seed=3, n_permutations=99).difference
        np.testing.assert_allclose(permutation_p_value(observed, permuted), 1)
