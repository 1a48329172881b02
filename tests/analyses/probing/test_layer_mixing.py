"""Expected layer, centre of gravity and concentration follow their definitions, and their intervals hold."""

from __future__ import annotations

import numpy as np

import planted
import planted_probes
from bertology.analyses.probing.dataset import ProbeDataset, ProbeExamples
from bertology.analyses.probing.fitting import ProbePredictions
from bertology.analyses.probing.layer_mixing import (
    LayerMixResult,
    divergence_from_uniform,
    expected_layer,
    expected_layer_shift,
    gain_concentration,
    layer_gains,
    stack_mixes,
)
from bertology.arrays import Array
from bertology.estimates.estimate import Estimate

GOLD = np.zeros((1, 10), int)
PREDICTED = np.array([[[1] * 6 + [0] * 4], [[1] * 4 + [0] * 6], [[1] * 1 + [0] * 9], [[1] * 2 + [0] * 8]])
WEIGHTS = np.array([[0.1, 0.2, 0.3, 0.4]])


def dataset_of(n_sentences: int, n_words: int) -> ProbeDataset:
    """Test examples of some sentences; only their number and sentences count."""
    inputs = planted.recorded_inputs(planted_probes.make_corpus(n_sentences, n_words))
    labels = np.full(n_sentences * n_words, "A", object)
    index = np.repeat(np.arange(n_sentences), n_words)
    examples = ProbeExamples(np.zeros((1, len(labels), 1)), labels, labels, index, inputs)
    return ProbeDataset(examples, examples, ("A", "B"), {})


def mix_of(predicted: Array) -> LayerMixResult:
    n_levels, n_seeds, n_examples = predicted.shape
    gold = np.zeros((n_seeds, n_examples), int)
    return LayerMixResult(ProbePredictions(predicted, gold), np.full((n_seeds, n_levels), 1 / n_levels))


def test_the_expected_layer_is_weighted_by_gains_and_the_centre_of_gravity_by_mixing_weights() -> None:
    mix, dataset = LayerMixResult(ProbePredictions(PREDICTED, GOLD), WEIGHTS), dataset_of(1, 10)
    np.testing.assert_allclose(layer_gains(dataset, mix, 0).value, [0.2, 0.3, -0.1])
    np.testing.assert_allclose(expected_layer(dataset, mix, 0).value, (1 * 0.2 + 2 * 0.3 - 3 * 0.1) / 0.4)
    np.testing.assert_allclose(mix.centre_of_gravity, [2.0])
    concentration = gain_concentration(dataset, mix, 0).value
    np.testing.assert_allclose(concentration, divergence_from_uniform(np.array([0.2, 0.3, 0.0])))
    np.testing.assert_allclose(mix.weight_concentration, divergence_from_uniform(WEIGHTS))


def test_without_gains_the_expected_layer_is_undefined() -> None:
    dataset = dataset_of(1, 10)
    constant, falling = mix_of(np.zeros((3, 1, 10), int)), mix_of(PREDICTED[::-1])
    for mix in (constant, falling):
        estimate = expected_layer(dataset, mix, 0)
        assert np.isnan([estimate.value, estimate.low, estimate.high]).all() and estimate.n == 0
        assert np.isnan(gain_concentration(dataset, mix, 0).value)


def test_the_shift_from_half_of_the_training_data_is_paired() -> None:
    dataset, mix = dataset_of(2, 5), mix_of(PREDICTED)
    assert expected_layer_shift(dataset, mix, mix, 0).value == 0
    later = mix_of(PREDICTED[[0, 0, 1, 2]])
    shift = expected_layer_shift(dataset, later, mix, 0).value
    expected = expected_layer(dataset, later, 0).value - expected_layer(dataset, mix, 0).value
    np.testing.assert_allclose(shift, expected)


def simulated_mix(generator: np.random.Generator, gains: Array, n_sentences: int, n_seeds: int) -> LayerMixResult:
    """Levels that solve examples with rising probability, which varies by sentence and seed."""
    n_words = 8
    accuracies = 0.4 + np.concatenate([[0.0], np.cumsum(gains)])
    by_sentence = generator.normal(0, 0.1, (n_sentences, 1)).repeat(n_words, 0).ravel()
    difficulty = np.clip(generator.random(n_sentences * n_words) + by_sentence, 0, 1)
    runs: list[LayerMixResult] = []
    for _ in range(n_seeds):
        noisy = accuracies + generator.normal(0, 0.01, len(accuracies))
        runs.append(mix_of((difficulty > noisy[:, None]).astype(int)[:, None]))
    return stack_mixes(runs)


def test_intervals_of_the_expected_layer_hold_as_often_as_they_say_and_agree_between_seeds() -> None:
    generator = np.random.default_rng(0)
    gains = np.array([0.2, 0.1, 0.05, 0.05])
    dataset, big = dataset_of(60, 8), dataset_of(4000, 8)
    truth = float(expected_layer(big, simulated_mix(generator, gains, 4000, 20), 0).value)
    estimates: list[Estimate] = []
    for seed in range(100):
        estimate = expected_layer(dataset, simulated_mix(generator, gains, 60, 3), seed)
        estimates.append(Estimate(float(estimate.value), float(estimate.low), float(estimate.high), 60))
    covered = np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])
    assert covered >= 0.88, covered
    pairs = list(zip(estimates[::2], estimates[1::2], strict=True))
    disjoint = np.mean([a.clearly_above(b) or a.clearly_below(b) for a, b in pairs])
    assert disjoint <= 0.04, disjoint


def test_an_expected_layer_that_is_often_undefined_has_no_interval() -> None:
    predicted = np.ones((3, 1, 480), int)
    predicted[0, 0, :100] = predicted[1, 0, 30:140] = predicted[2, 0, 30:140] = 0
    estimate = expected_layer(dataset_of(60, 8), mix_of(predicted), 0)
    assert estimate.value == 1 and estimate.n == 60  # 10 examples more are right in layer 1: 40 gained, 30 lost
    assert np.isnan(estimate.low) and np.isnan(estimate.high)


def test_divergence_from_uniform_is_zero_for_equal_values_and_largest_for_one() -> None:
    np.testing.assert_allclose(divergence_from_uniform(np.array([[1, 1, 1, 1], [0, 0, 4, 0]])), [0, 2], atol=1e-9)
