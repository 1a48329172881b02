"""Expected layer, centre of gravity and concentration follow their definitions."""

from __future__ import annotations

import numpy as np

from bertology.analyses.probing.fitting import ProbePredictions
from bertology.analyses.probing.layer_mixing import LayerMixResult, divergence_from_uniform

GOLD = np.zeros((1, 10), int)
PREDICTED = np.array([[[1] * 6 + [0] * 4], [[1] * 4 + [0] * 6], [[1] * 1 + [0] * 9], [[1] * 2 + [0] * 8]])
WEIGHTS = np.array([[0.1, 0.2, 0.3, 0.4]])


def test_the_expected_layer_is_weighted_by_gains_and_the_centre_of_gravity_by_mixing_weights() -> None:
    mix = LayerMixResult(ProbePredictions(PREDICTED, GOLD), WEIGHTS)
    np.testing.assert_allclose(mix.scores, [[0.4, 0.6, 0.9, 0.8]])
    np.testing.assert_allclose(mix.expected_layer, [(1 * 0.2 + 2 * 0.3 - 3 * 0.1) / 0.4])
    np.testing.assert_allclose(mix.centre_of_gravity, [2.0])
    np.testing.assert_allclose(mix.gain_concentration, divergence_from_uniform(np.array([[0.2, 0.3, 0.0]])))
    np.testing.assert_allclose(mix.weight_concentration, divergence_from_uniform(WEIGHTS))


def test_without_gains_the_expected_layer_is_undefined() -> None:
    constant = LayerMixResult(ProbePredictions(np.zeros((3, 1, 10), int), GOLD), np.ones((1, 3)) / 3)
    assert np.isnan(constant.expected_layer).all()
    falling = LayerMixResult(ProbePredictions(PREDICTED[::-1], GOLD), WEIGHTS)
    assert np.isnan(falling.expected_layer).all() and np.isnan(falling.gain_concentration).all()


def test_divergence_from_uniform_is_zero_for_equal_values_and_largest_for_one() -> None:
    np.testing.assert_allclose(divergence_from_uniform(np.array([[1, 1, 1, 1], [0, 0, 4, 0]])), [0, 2], atol=1e-9)
