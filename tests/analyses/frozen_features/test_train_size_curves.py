"""Crossings and levels of small curves whose values are known."""

from __future__ import annotations

import numpy as np

from bertology.analyses.frozen_features.train_size_curves import first_x_reaching, isotonic_fit, last_crossing

X = np.array([0.0, 1.0, 2.0, 3.0])


def test_last_crossing_is_the_last_change_of_sign() -> None:
    differences = np.array([
        [1.0, -1.0, 1.0, -3.0],  # three crossings
        [1.0, 2.0, 3.0, 4.0],
        [-1.0, 0.0, 2.0, 2.0],  # crossing at a point
        [0.0, 1.0, 1.0, 0.0],  # touches without crossing
        [0.0, 0.0, 0.0, 0.0],
    ])  # fmt: skip
    np.testing.assert_allclose(last_crossing(X, differences), [2.25, np.nan, 1.0, np.nan, np.nan])


def test_curve_with_one_point_has_no_crossing() -> None:
    assert np.isnan(last_crossing(X[:1], np.ones((2, 1)))).all()


def test_first_x_that_reaches_a_level() -> None:
    curves = np.array([[0.0, 0.5, 0.5, 1.0]] * 5)
    x = first_x_reaching(X, curves, np.array([0.25, 0.5, 0.75, -1.0, 1.5]))
    np.testing.assert_allclose(x, [0.5, 1.0, 2.5, 0.0, np.nan])


def test_isotonic_fit_averages_decreasing_points() -> None:
    np.testing.assert_allclose(isotonic_fit(np.array([[0.0, 2.0, 1.0, 3.0]])), [[0.0, 1.5, 1.5, 3.0]])
