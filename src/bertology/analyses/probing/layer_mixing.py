"""Probes on a scalar mix of layers: mixing weights, and the gain of each further layer (tenney2019)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bertology.analyses.probing.dataset import ProbeDataset, validation_mask
from bertology.analyses.probing.fitting import VALIDATION_FRACTION, ProbeConfig, ProbePredictions
from bertology.arrays import Array
from bertology.numerics.batched_classifier import UNUSED_LABEL
from bertology.numerics.scalar_mix import fit_scalar_mixes

L2_MULTIPLIER = 20.0
"""The L2 penalty of a scalar-mix probe, as a multiple of 1 / (number of examples)."""

TOLERANCE, MAX_ITERATIONS = 1e-4, 200
"""Stricter than for other probes, because the gain of a layer is a small difference."""

MIN_GAIN = 0.01
"""The expected layer is undefined (NaN) if all layers together gain less than this over layer 0."""


@dataclass(frozen=True)
class LayerMixResult:
    """Predictions from mixes of layers 0 to l, (level, seed, example), and (seed, layer) weights of the full mix."""

    cumulative_predictions: ProbePredictions
    mixing_weights: Array

    @property
    def scores(self) -> Array:
        """(seed, level) accuracy."""
        return (self.cumulative_predictions.predicted == self.cumulative_predictions.gold).mean(-1).T

    @property
    def gains(self) -> Array:
        """(seed, layer from 1) accuracy gain of each layer."""
        return np.diff(self.scores, axis=1)

    @property
    def centre_of_gravity(self) -> Array:
        """(seed,) mean layer, weighted by mixing weights."""
        return self.mixing_weights @ np.arange(self.mixing_weights.shape[1])

    @property
    def expected_layer(self) -> Array:
        """(seed,) mean layer, weighted by gains, which may be negative; NaN below `MIN_GAIN`."""
        total = self.gains.sum(1)
        sums = self.gains @ np.arange(1, self.gains.shape[1] + 1)
        return np.where(total >= MIN_GAIN, sums / np.where(total == 0, 1, total), np.nan)

    @property
    def gain_concentration(self) -> Array:
        """(seed,) KL divergence of the gains from uniform, in bits; NaN below `MIN_GAIN`."""
        return np.where(self.gains.sum(1) >= MIN_GAIN, divergence_from_uniform(self.gains), np.nan)

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


def divergence_from_uniform(values: Array) -> Array:
    """(seed,) KL divergence in bits of (seed, layer) values from uniform, negative values set to 0.

    0: the same in all layers; log2 of the number of layers: all in one layer.
    """
    positive = np.clip(values, 0, None)
    p = positive / np.maximum(positive.sum(-1, keepdims=True), 1e-12)
    return np.log2(values.shape[-1]) + np.where(p > 0, p * np.log2(np.maximum(p, 1e-12)), 0).sum(-1)
