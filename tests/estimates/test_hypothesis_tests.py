"""Paired tests agree with SciPy, exact ones with its permutation test; Holm's correction keeps false positives rare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bertology.estimates.hypothesis_tests import MIN_UNITS, holm, paired_test


def test_p_values_agree_with_scipy() -> None:
    values = np.random.default_rng(0).normal(0.2, size=(30, 5))
    values[3:9, 2] = np.nan
    _, expected = stats.ttest_1samp(values, 0, alternative="greater", nan_policy="omit")
    np.testing.assert_allclose(paired_test(values), np.asarray(expected, float))


def test_constant_and_missing_differences() -> None:
    values = np.array([[1.0, -1.0, 0.0, np.nan, 5.0], [1.0, -1.0, 0.0, np.nan, np.nan]])
    np.testing.assert_array_equal(paired_test(values), [0.25, 1, 1, np.nan, np.nan])
    assert paired_test(np.zeros((0, 3, 2))).shape == (3, 2)


@pytest.mark.parametrize("n", [3, 7, 12])
def test_few_differences_are_tested_exactly(n: int) -> None:
    values = np.random.default_rng(n).normal(0.5, size=n)
    expected = stats.permutation_test((values,), np.mean, permutation_type="samples", alternative="greater")
    assert paired_test(values[:, None])[0] == pytest.approx(expected.pvalue)
    # Cases in which both agree say nothing about which is better.
    assert paired_test(np.concatenate([values, np.zeros(50)])[:, None])[0] == pytest.approx(expected.pvalue)


def test_the_exact_test_of_counts_is_that_of_mcnemar() -> None:
    values = np.array([1.0] * 7 + [-1.0] * 2 + [0.0] * 20)
    assert paired_test(values[:, None])[0] == pytest.approx(stats.binomtest(7, 9, alternative="greater").pvalue)


def test_no_p_value_is_lower_than_the_number_of_differences_allows() -> None:
    for n in (2, 4, 5, 13, 30):
        assert paired_test(np.ones((n, 1)))[0] == 0.5**n
        assert paired_test(1 + 1e-3 * np.random.default_rng(n).normal(size=(n, 1)))[0] >= 0.5**n
    assert paired_test(np.ones((MIN_UNITS - 1, 1)))[0] > 0.05 > paired_test(np.ones((MIN_UNITS, 1)))[0]


def test_rare_differences_are_not_significant_more_often_than_stated() -> None:
    """Two methods that differ in one of twenty cases: the t test would find differences too often."""
    generator = np.random.default_rng(0)
    values = generator.choice([-1.0, 0.0, 1.0], p=[0.025, 0.95, 0.025], size=(60, 5000))
    assert np.mean(paired_test(values) < 0.05) < 0.05


def test_holm_agrees_with_a_calculation_by_hand() -> None:
    p = np.array([[0.01, 0.04], [0.03, np.nan]])
    np.testing.assert_allclose(holm(p), [[0.03, 0.06], [0.06, np.nan]])


def test_false_positives_are_rare_however_many_heads_are_tested() -> None:
    false_positives = [
        bool((holm(paired_test(np.random.default_rng(seed).normal(size=(40, 144)))) < 0.05).any())
        for seed in range(100)
    ]
    assert np.mean(false_positives) < 0.12
