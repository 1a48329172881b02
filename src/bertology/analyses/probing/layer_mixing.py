"""Probes on a scalar mix of layers: mixing weights, and the gain of each further layer (tenney2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.analyses.probing.dataset import ProbeDataset, validation_mask
from bertology.analyses.probing.fitting import VALIDATION_FRACTION, ProbeConfig, ProbePredictions, correct_and_total
from bertology.arrays import Array, FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous, ratio
from bertology.numerics.batched_classifier import UNUSED_LABEL
from bertology.numerics.scalar_mix import fit_scalar_mixes

L2_MULTIPLIER = 20.0
"""The L2 penalty of a scalar-mix probe, as a multiple of 1 / (number of examples)."""

TOLERANCE, MAX_ITERATIONS = 1e-4, 200
"""Stricter than for other probes, because the gain of a layer is a small difference."""

MIN_GAIN = 0.01
"""The expected layer is undefined (NaN) if all layers together gain less than this over layer 0."""

MAX_UNDEFINED = 0.05
"""There is no interval if the expected layer is undefined in more than this fraction of resamples."""


@dataclass(frozen=True)
class LayerMixResult:
    """Predictions from mixes of layers 0 to l, (level, seed, example), and (seed, layer) weights of the full mix."""

    cumulative_predictions: ProbePredictions
    mixing_weights: Array

    @property
    def centre_of_gravity(self) -> Array:
        """(seed,) mean layer, weighted by mixing weights."""
        return self.mixing_weights @ np.arange(self.mixing_weights.shape[1])

    @property
    def weight_concentration(self) -> Array:
        """(seed,) KL divergence of the mixing weights from uniform, in bits."""
        return divergence_from_uniform(self.mixing_weights)


def fit_layer_mixes(dataset: ProbeDataset, config: ProbeConfig, *, normalise_layers: bool = False) -> LayerMixResult:
    """Fit a probe on the scalar mix of layers 0 to l, for every l and seed; each starts from the one before."""
    is_validation = np.stack([validation_mask(dataset.train, VALIDATION_FRACTION, seed) for seed in config.seeds])
    labels = np.where(is_validation, UNUSED_LABEL, dataset.label_ids(dataset.train))
    penalty = L2_MULTIPLIER / max(1, int((~is_validation).sum(1).min()))
    classifier = replace(config.classifier, l2_penalties=(penalty,), tolerance=TOLERANCE, max_iterations=MAX_ITERATIONS)
    predicted: list[Array] = []
    probes = None
    for level in range(len(dataset.train.features)):
        probes = fit_scalar_mixes(
            dataset.train.features[: level + 1],
            labels,
            len(dataset.labels),
            classifier,
            seeds=config.seeds,
            scale_each_layer=normalise_layers,
            warm_start=probes,
        )
        predicted.append(probes.predict(dataset.test.features[: level + 1]))
    gold = np.tile(dataset.label_ids(dataset.test), (len(config.seeds), 1))
    assert probes is not None  # the embeddings are always a layer
    return LayerMixResult(ProbePredictions(np.stack(predicted), gold), probes.mixing_weights)


def stack_mixes(mixes: Sequence[LayerMixResult]) -> LayerMixResult:
    """The mixes of different seeds on the same test data, as one."""
    predicted = np.concatenate([mix.cumulative_predictions.predicted for mix in mixes], 1)
    gold = np.concatenate([mix.cumulative_predictions.gold for mix in mixes])
    return LayerMixResult(ProbePredictions(predicted, gold), np.concatenate([mix.mixing_weights for mix in mixes]))


def layer_gains(dataset: ProbeDataset, mixes: LayerMixResult, seed: int) -> Estimates:
    """(layer from 1,) accuracy gain of each layer, with an interval over test sentences and seeds."""
    gains = bootstrap_sentences_and_seeds(_level_counts(dataset, mixes), _gains, seed=seed)
    return exact_where_unanimous(gains, lowest=-1.0)


def expected_layer(dataset: ProbeDataset, mixes: LayerMixResult, seed: int) -> Estimates:
    """Mean layer, weighted by gains, with an interval over test sentences and seeds; undefined below `MIN_GAIN`."""
    counts = _level_counts(dataset, mixes)
    return bootstrap_sentences_and_seeds(counts, _expected_layer, seed=seed, max_undefined=MAX_UNDEFINED)


def expected_layer_shift(dataset: ProbeDataset, mixes: LayerMixResult, half: LayerMixResult, seed: int) -> Estimates:
    """The expected layer minus that of probes of half of the training data, on the same test sentences and seeds."""
    counts = np.stack([_level_counts(dataset, part) for part in (mixes, half)], -1)
    return bootstrap_sentences_and_seeds(
        counts,
        lambda sums: _expected_layer(sums[..., 0]) - _expected_layer(sums[..., 1]),
        seed=seed,
        max_undefined=MAX_UNDEFINED,
    )


def gain_concentration(dataset: ProbeDataset, mixes: LayerMixResult, seed: int) -> Estimates:
    """KL divergence of the gains from uniform, in bits, with an interval as above; undefined below `MIN_GAIN`."""

    def concentration(sums: FloatArray) -> FloatArray:
        gains = _gains(sums)
        return np.where(gains.sum(-1) >= MIN_GAIN, divergence_from_uniform(gains), np.nan)

    counts = _level_counts(dataset, mixes)
    return bootstrap_sentences_and_seeds(counts, concentration, seed=seed, max_undefined=MAX_UNDEFINED)


def _level_counts(dataset: ProbeDataset, mixes: LayerMixResult) -> Array:
    """(seed, sentence, level, 2) correct examples and examples."""
    return correct_and_total(dataset, mixes.cumulative_predictions)


def _gains(sums: FloatArray) -> FloatArray:
    """(..., layer from 1) accuracy gain of each layer, from (..., level, 2) correct examples and examples."""
    return np.diff(ratio(sums[..., 0], sums[..., 1]), axis=-1)


def _expected_layer(sums: FloatArray) -> FloatArray:
    """(...,) mean layer, weighted by gains, which may be negative; NaN below `MIN_GAIN`."""
    gains = _gains(sums)
    total = gains.sum(-1)
    weighted = gains @ np.arange(1.0, gains.shape[-1] + 1)
    return np.where(total >= MIN_GAIN, weighted / np.where(total == 0, 1, total), np.nan)


def divergence_from_uniform(values: Array) -> Array:
    """(...,) KL divergence in bits of (..., layer) values from uniform, negative values set to 0.

    0: the same in all layers; log2 of the number of layers: all in one layer.
    """
    positive = np.clip(values, 0, None)
    p = positive / np.maximum(positive.sum(-1, keepdims=True), 1e-12)
    return np.log2(values.shape[-1]) + np.where(p > 0, p * np.log2(np.maximum(p, 1e-12)), 0).sum(-1)
