"""Bootstrap intervals cover what they say, and agree with scipy's."""

from __future__ import annotations

import numpy as np
from scipy.stats import bootstrap

from bertology.maths.resampling import bootstrap_group_mean, bootstrap_mean, bootstrap_ratio


def test_it_agrees_with_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    mean, low, high, n = bootstrap_mean(values, seed=1, resamples=4000)
    theirs = bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=2).confidence_interval
    np.testing.assert_allclose(mean, values.mean(0))
    np.testing.assert_allclose(low, theirs.low, atol=0.012)
    np.testing.assert_allclose(high, theirs.high, atol=0.012)
    np.testing.assert_array_equal(n, 200)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    samples = generator.exponential(size=(60, 400))
    _, low, high, _ = bootstrap_mean(samples, seed=0, resamples=500)
    covered = np.mean((low < 1) & (high > 1))
    assert 0.88 < covered < 0.97


def test_nan_is_not_measured() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan], [5.0, 2.0]])
    mean, low, high, n = bootstrap_mean(values, seed=0)
    np.testing.assert_array_equal(n, [3, 1])
    np.testing.assert_allclose(mean, [3.0, 2.0])
    assert low[0] < 3 < high[0]
    assert np.isnan([low[1], high[1]]).all()


def test_nothing_measured_is_nan() -> None:
    mean, low, _, n = bootstrap_mean(np.full((5, 1), np.nan), seed=0)
    assert np.isnan(mean).all() and np.isnan(low).all() and n[0] == 0


def test_a_ratio_pools_over_rows() -> None:
    top, bottom = np.array([[1.0], [0.0], [9.0]]), np.array([[2.0], [0.0], [10.0]])
    value, _, _, n = bootstrap_ratio(top, bottom, seed=0)
    np.testing.assert_allclose(value, [10 / 12])
    np.testing.assert_array_equal(n, [2])


def test_the_seed_decides() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    first, again, other = (bootstrap_mean(values, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_groups_count_alike_whatever_their_size() -> None:
    values = np.array([[1.0], [2.0], [3.0], [10.0], [np.nan]])
    groups = np.array([5, 5, 5, 8, 9])
    mean, low, high, n = bootstrap_group_mean(values, groups, seed=0)
    np.testing.assert_allclose(mean, [(2 + 10) / 2])
    assert n.tolist() == [4]
    assert low[0] < mean[0] < high[0]
    nothing = bootstrap_group_mean(values[4:], groups[4:], seed=0)
    assert np.isnan(nothing[0]).all() and nothing[3].tolist() == [0]


def test_one_group_is_a_plain_mean() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2))
    for mine, plain in zip(
        bootstrap_group_mean(values, np.zeros(40, int), seed=3), bootstrap_mean(values, seed=3), strict=True
    ):
        np.testing.assert_allclose(mine, plain)
