"""Rows of circulant matrices are those of the dense matrix, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import circulant

from bertology.maths.circulant import circulant_rows, scaled_to


def test_rows_are_those_of_the_dense_matrix() -> None:
    generator = np.random.default_rng(0)
    weights, signs = generator.normal(size=(3, 5)), generator.choice([-1.0, 1.0], size=(3, 5))
    dense = np.concatenate([circulant(g) * e for g, e in zip(weights, signs, strict=True)])
    np.testing.assert_array_equal(circulant_rows(np.arange(15), weights, signs), dense)
    np.testing.assert_array_equal(circulant_rows(np.array([[14, 2]]), weights, signs), dense[[[14, 2]]])


def test_what_is_no_row_is_refused() -> None:
    ones = np.ones((2, 3))
    for rows in ([6], [-1]):
        with pytest.raises(IndexError):
            circulant_rows(np.array(rows), ones, ones)
    with pytest.raises(TypeError):
        circulant_rows(np.array([1.0]), ones, ones)


def test_the_mean_norm_is_as_asked_for() -> None:
    weights = np.random.default_rng(1).normal(size=(3, 4))
    scaled = scaled_to(2.5, weights, 10)  # two whole blocks, and half of the third
    rows = circulant_rows(np.arange(10), scaled, np.ones((3, 4)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1).mean(), 2.5)
