"""Bootstrap intervals have the stated coverage and agree with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import bootstrap

from bertology.estimates.resampling import (
    bootstrap_group_mean,
    bootstrap_mean,
    bootstrap_proportion,
    bootstrap_ratio,
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    paired_difference,
    percentile_interval,
    range_over_seeds,
    ratio,
    widen_by_rule_of_three,
)


def test_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    estimates = bootstrap_mean(values, seed=1, resamples=4000)
    expected = bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=2).confidence_interval
    np.testing.assert_allclose(estimates.value, values.mean(0))
    np.testing.assert_allclose(estimates.low, expected.low, atol=0.012)
    np.testing.assert_allclose(estimates.high, expected.high, atol=0.012)
    np.testing.assert_array_equal(estimates.n, 200)
    assert estimates.interval == "bootstrap"


def test_the_interval_covers_the_truth_in_95_percent_of_samples() -> None:
    generator = np.random.default_rng(3)
    samples = generator.exponential(size=(60, 400))
    estimates = bootstrap_mean(samples, seed=0, resamples=500)
    coverage = np.mean((estimates.low < 1) & (estimates.high > 1))
    assert 0.88 < coverage < 0.97


def test_nan_counts_as_not_measured() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan], [5.0, 2.0]])
    estimates = bootstrap_mean(values, seed=0)
    np.testing.assert_array_equal(estimates.n, [3, 1])
    np.testing.assert_allclose(estimates.value, [3.0, 2.0])
    assert estimates.low[0] < 3 < estimates.high[0]
    assert np.isnan([estimates.low[1], estimates.high[1]]).all()


def test_the_mean_of_nothing_is_nan() -> None:
    estimates = bootstrap_mean(np.full((5, 1), np.nan), seed=0)
    assert np.isnan(estimates.value).all() and np.isnan(estimates.low).all() and estimates.n[0] == 0


def test_a_ratio_pools_over_rows() -> None:
    numerators, denominators = np.array([[1.0], [0.0], [9.0]]), np.array([[2.0], [0.0], [10.0]])
    estimates = bootstrap_ratio(numerators, denominators, seed=0)
    np.testing.assert_allclose(estimates.value, [10 / 12])
    np.testing.assert_array_equal(estimates.n, [2])


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    first, repeated, other_seed = (bootstrap_mean(values, seed=seed).low for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, repeated)
    assert (first != other_seed).any()


def test_groups_have_equal_weight_whatever_their_size() -> None:
    values = np.array([[1.0], [2.0], [3.0], [10.0], [np.nan]])
    groups = np.array([5, 5, 5, 8, 9])
    estimates = bootstrap_group_mean(values, groups, seed=0)
    np.testing.assert_allclose(estimates.value, [(2 + 10) / 2])
    assert estimates.n.tolist() == [4]
    assert estimates.low[0] < estimates.value[0] < estimates.high[0]
    empty = bootstrap_group_mean(values[4:], groups[4:], seed=0)
    assert np.isnan(empty.value).all() and empty.n.tolist() == [0]


def test_the_mean_of_one_group_is_a_plain_mean() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2))
    grouped, plain = bootstrap_group_mean(values, np.zeros(40, int), seed=3), bootstrap_mean(values, seed=3)
    for name in ("value", "low", "high", "n"):
        np.testing.assert_allclose(getattr(grouped, name), getattr(plain, name))


def test_a_range_over_seeds_says_that_it_is_a_range() -> None:
    estimates = range_over_seeds(np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]]))
    assert estimates.interval == "range" and estimates.n.tolist() == [3, 3]
    assert (estimates[0].value, estimates[0].low, estimates[0].high) == (3.0, 1.0, 6.0)


def test_a_percentile_interval_ignores_nan() -> None:
    samples = np.column_stack([np.arange(101.0), np.where(np.arange(101) % 2, np.nan, np.arange(101.0))])
    low, high = percentile_interval(samples)
    np.testing.assert_allclose(low, np.nanpercentile(samples, 2.5, axis=0))
    np.testing.assert_allclose(high, np.nanpercentile(samples, 97.5, axis=0))
    assert np.isnan(percentile_interval(np.full((3, 1), np.nan))).all()


def test_a_ratio_of_nothing_is_the_value_for_empty() -> None:
    np.testing.assert_array_equal(ratio([1.0, 0.0], [2.0, 0.0]), [0.5, 0.0])
    np.testing.assert_array_equal(ratio([1.0, 0.0], [2.0, 0.0], empty=1.0), [0.5, 1.0])


def test_differences_that_were_never_observed_widen_the_interval_by_three_over_n() -> None:
    differences = bootstrap_mean(np.zeros((30, 2)), seed=0)
    widened = widen_by_rule_of_three(differences, np.array([True, False]))
    np.testing.assert_allclose(widened.low, [-0.1, 0.0])
    np.testing.assert_allclose(widened.high, [0.1, 0.0])


def test_proportions_on_which_all_rows_agree_have_the_interval_of_clopper_and_pearson() -> None:
    correct, total = np.array([[1.0, 0.0, 1.0]] * 7), np.ones((7, 3))
    correct[0, 2] = 0
    estimates = bootstrap_proportion(correct, total, seed=0)
    for column, k in enumerate((7, 0)):
        exact = stats.binomtest(k, 7).proportion_ci(method="exact")
        assert (estimates.low[column], estimates.high[column]) == pytest.approx((exact.low, exact.high))
    mixed = bootstrap_ratio(correct, total, seed=0)
    assert (estimates.low[2], estimates.high[2]) == (mixed.low[2], mixed.high[2])
    assert np.isnan(bootstrap_proportion(correct[:1], total[:1], seed=0).low).all()


def test_differences_that_are_all_zero_have_an_interval_that_covers_the_truth() -> None:
    generator = np.random.default_rng(5)
    for rate in (0.01, 0.05, 0.1):
        # In 20 examples a rare change is often not seen at all.
        changes = (generator.random((20, 2000)) < rate).astype(np.float64)
        plain = bootstrap_mean(changes, seed=0, resamples=200)
        estimates = exact_where_unanimous(plain, lowest=-1.0)
        unseen = changes.sum(0) == 0
        np.testing.assert_allclose(estimates.low[unseen], -estimates.high[unseen])
        assert (estimates.high[unseen] >= rate).all() and (plain.high[unseen] == 0).all()
        np.testing.assert_array_equal(estimates.low[~unseen], plain.low[~unseen])
    proportion = exact_where_unanimous(bootstrap_mean(np.zeros((20, 1)), seed=0))
    exact = stats.binomtest(0, 20).proportion_ci(method="exact")
    assert (proportion.low[0], proportion.high[0]) == (0, pytest.approx(exact.high))


def test_limits_that_differ_from_zero_by_rounding_errors_are_zero() -> None:
    noise = 0.1 + 0.2 - 0.3
    resampled = np.array([[-0.6, 1e-9], [-0.3, 1e-9], *[[-noise, 1e-9]] * 40])
    low, high = percentile_interval(resampled)
    assert low[0] < -0.2 and high[0] == 0 and not np.signbit(high[0])
    assert high[1] == 1e-9  # all numbers of this column are small


def test_paired_differences_are_narrower_and_cover_the_truth() -> None:
    """Sentences differ far more than the two models do on each of them."""
    generator = np.random.default_rng(7)
    sentences = generator.normal(size=(80, 400))
    first, second = (sentences + mean + 0.2 * generator.normal(size=(80, 400)) for mean in (0.1, 0.0))
    estimates = [bootstrap_mean(values, seed=0, resamples=500) for values in (first, second)]
    difference = paired_difference(*estimates)
    assert difference is not None
    np.testing.assert_allclose(difference.value, (first - second).mean(0))
    coverage = np.mean((difference.low < 0.1) & (difference.high > 0.1))
    assert 0.9 < coverage < 0.98
    widths = [np.mean(e.high - e.low) for e in (difference, *estimates)]
    assert widths[0] < 0.4 * min(widths[1:])
    np.testing.assert_array_equal(difference.n, 80)


def test_seeds_of_two_probes_are_paired_as_well() -> None:
    generator = np.random.default_rng(2)
    shared = generator.normal(size=(3, 1, 1)) + generator.normal(size=(3, 50, 1))
    first, second = (
        bootstrap_sentences_and_seeds(shared + shift, lambda sums: sums[..., 0] / 150, seed=0) for shift in (0.5, 0.0)
    )
    difference = paired_difference(first, second)
    assert difference is not None and difference[()].low == pytest.approx(0.5) == difference[()].high


def test_estimates_without_spread_have_no_paired_interval() -> None:
    """All cases right says nothing about how often they would be in other cases."""
    correct = np.array([[1.0, 0.0], [1.0, 1.0]] * 20)
    other = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] * 10)
    first, second = (bootstrap_proportion(values, np.ones((40, 2)), seed=0) for values in (correct, other))
    difference = paired_difference(first, second)
    assert difference is not None
    np.testing.assert_array_equal(np.isnan(difference.low), [True, False])
    assert difference[1].low < 0 < difference[1].high
    allowed = paired_difference(first, second, allow_constant=True)
    assert allowed is not None and np.isfinite(allowed.low).all() and allowed[1] == difference[1]
    assert paired_difference(first, range_over_seeds(np.ones((3, 2)))) is None
