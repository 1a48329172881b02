"""The tests are scipy's; Holm's correction keeps false alarms rare."""

from __future__ import annotations

import numpy as np
from scipy import stats

from bertology.maths.multiple_tests import holm, paired_above


def test_p_is_scipys() -> None:
    values = np.random.default_rng(0).normal(0.2, size=(30, 5))
    values[3:9, 2] = np.nan
    _, expected = stats.ttest_1samp(values, 0, alternative="greater", nan_policy="omit")
    np.testing.assert_allclose(paired_above(values), np.asarray(expected, float))


def test_what_never_varies_or_is_not_there() -> None:
    values = np.array([[1.0, -1.0, 0.0, np.nan, 5.0], [1.0, -1.0, 0.0, np.nan, np.nan]])
    np.testing.assert_array_equal(paired_above(values), [0, 1, 1, np.nan, np.nan])


def test_holm_by_hand() -> None:
    p = np.array([[0.01, 0.04], [0.03, np.nan]])
    np.testing.assert_allclose(holm(p), [[0.03, 0.06], [0.06, np.nan]])


def test_false_alarms_are_rare_however_many_heads_are_tried() -> None:
    alarms = [
        bool((holm(paired_above(np.random.default_rng(seed).normal(size=(40, 144)))) < 0.05).any())
        for seed in range(100)
    ]
    assert np.mean(alarms) < 0.12
