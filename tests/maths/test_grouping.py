"""Planted groups are found, shuffled ones are not; silhouettes agree with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import silhouette_samples

from bertology.maths.grouping import separation, share_as_large, shuffled, to_groups
from bertology.maths.scaling import between

GROUPS = np.repeat(np.arange(4), 5)


def distances(apart: float, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(4, 3)) * apart
    return between(centres[GROUPS] + generator.normal(size=(20, 3)))


def test_silhouettes_are_those_of_scikit_learn() -> None:
    given = distances(1.0)
    expected = np.asarray(silhouette_samples(given, GROUPS, metric="precomputed")).reshape(4, 5).mean(1)
    found = separation(to_groups(given, GROUPS), GROUPS)
    np.testing.assert_allclose(found.silhouette[:4], expected)
    np.testing.assert_allclose(found.silhouette[4], expected.mean())


def test_within_and_between_by_hand() -> None:
    given = distances(1.0)
    found = separation(to_groups(given, GROUPS), GROUPS)
    same = GROUPS[:, None] == GROUPS
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(found.within[4], given[same & off].mean())
    np.testing.assert_allclose(found.between[4], given[~same].mean())
    second = GROUPS == 1
    np.testing.assert_allclose(found.between[1], given[second][:, ~second].mean())


def test_planted_groups_are_told_from_chance() -> None:
    for apart, likely in ((4.0, False), (0.0, True)):
        given = distances(apart)
        observed = separation(to_groups(given, GROUPS), GROUPS).difference
        p = share_as_large(observed, shuffled(given, GROUPS, seed=0, shuffles=199).difference)
        assert (p[4] > 0.05) == likely
    assert p.min() > 0


def test_p_is_uniform_without_groups() -> None:
    found = [
        share_as_large(
            separation(to_groups(given, GROUPS), GROUPS).difference,
            shuffled(given, GROUPS, seed=1, shuffles=49).difference,
        )[4]
        for given in (distances(0.0, seed) for seed in range(60))
    ]
    assert 0.35 < np.mean(found) < 0.65
    assert np.mean(np.array(found) <= 0.1) < 0.25


def test_equal_differences_count_as_large_whatever_the_rounding() -> None:
    """Two kinds of items, dealt so that no shuffle can make the groups more alike: every shuffle is as large."""
    kind, groups = np.tile([0, 1], 4), np.repeat([0, 1], 4)
    given = (kind[:, None] != kind).astype(float)
    observed = separation(to_groups(given, groups), groups).difference
    for seed in range(5):
        rounded = given + np.random.default_rng(seed).uniform(-1e-8, 1e-8, size=given.shape)
        np.fill_diagonal(rounded, 0)
        chance = shuffled(rounded, groups, seed=3, shuffles=99).difference
        np.testing.assert_allclose(share_as_large(observed, chance), 1)
