"""Crossings and levels are where one reads them off by eye."""

from __future__ import annotations

import numpy as np

from bertology.maths.crossings import last_crossing, reached_at, rising

X = np.array([0.0, 1.0, 2.0, 3.0])


def test_the_last_change_of_sign() -> None:
    differences = np.array([
        [1.0, -1.0, 1.0, -3.0],  # three of them
        [1.0, 2.0, 3.0, 4.0],
        [-1.0, 0.0, 2.0, 2.0],  # at a point
        [0.0, 1.0, 1.0, 0.0],  # touched, not crossed
        [0.0, 0.0, 0.0, 0.0],
    ])  # fmt: skip
    np.testing.assert_allclose(last_crossing(X, differences), [2.25, np.nan, 1.0, np.nan, np.nan])


def test_one_point_crosses_nothing() -> None:
    assert np.isnan(last_crossing(X[:1], np.ones((2, 1)))).all()


def test_a_level_is_reached() -> None:
    curves = np.array([[0.0, 0.5, 0.5, 1.0]] * 5)
    found = reached_at(X, curves, np.array([0.25, 0.5, 0.75, -1.0, 1.5]))
    np.testing.assert_allclose(found, [0.5, 1.0, 2.5, 0.0, np.nan])


def test_falls_are_evened_out() -> None:
    np.testing.assert_allclose(rising(np.array([[0.0, 2.0, 1.0, 3.0]])), [[0.0, 1.5, 1.5, 3.0]])
