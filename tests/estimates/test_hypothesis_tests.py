"""The t test agrees with SciPy, and Holm's correction keeps false positives rare."""

from __future__ import annotations

import numpy as np
from scipy import stats

from bertology.estimates.hypothesis_tests import holm, paired_t_test


def test_p_values_agree_with_scipy() -> None:
    values = np.random.default_rng(0).normal(0.2, size=(30, 5))
    values[3:9, 2] = np.nan
    _, expected = stats.ttest_1samp(values, 0, alternative="greater", nan_policy="omit")
    np.testing.assert_allclose(paired_t_test(values), np.asarray(expected, float))


def test_constant_and_missing_differences() -> None:
    values = np.array([[1.0, -1.0, 0.0, np.nan, 5.0], [1.0, -1.0, 0.0, np.nan, np.nan]])
    np.testing.assert_array_equal(paired_t_test(values), [0, 1, 1, np.nan, np.nan])


def test_holm_agrees_with_a_calculation_by_hand() -> None:
    p = np.array([[0.01, 0.04], [0.03, np.nan]])
    np.testing.assert_allclose(holm(p), [[0.03, 0.06], [0.06, np.nan]])


def test_false_positives_are_rare_however_many_heads_are_tested() -> None:
    false_positives = [
        bool((holm(paired_t_test(np.random.default_rng(seed).normal(size=(40, 144)))) < 0.05).any())
        for seed in range(100)
    ]
    assert np.mean(false_positives) < 0.12
