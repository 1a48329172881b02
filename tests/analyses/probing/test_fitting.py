"""Probes with hidden units do not stop too early if validation documents differ from the training documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertology.analyses.probing.fitting import fit_probes, parse_probe
from bertology.arrays import Array
from bertology.numerics.batched_classifier import ClassifierConfig

SEEDS = (0, 1, 2)
N_EXAMPLES, N_LEARNED, N_TRAIN = 1000, 750, 600


def misleading_data(seed: int) -> tuple[Array, Array]:
    """(example, feature) features and (example,) labels.

    The label is the parity of three features in all examples, which is learned late. Four other features show it
    directly in nine of ten training examples, but in three of ten validation and test examples, whose loss rises first.
    """
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, N_EXAMPLES)
    signs = 2 * labels - 1
    is_right = generator.random(N_EXAMPLES) < np.where(np.arange(N_EXAMPLES) < N_TRAIN, 0.9, 0.3)
    parity = generator.choice([-1, 1], (N_EXAMPLES, 3))
    parity[:, 2] = parity[:, 0] * parity[:, 1] * signs
    direct = np.where(is_right, signs, -signs)[:, None] + 0.5 * generator.normal(size=(N_EXAMPLES, 4))
    noisy_parity = parity + 0.2 * generator.normal(size=(N_EXAMPLES, 3))
    return np.concatenate([direct, noisy_parity], 1).astype(np.float32), labels


def held_out_accuracy(config: ClassifierConfig, seed: int) -> float:
    """Accuracy on the examples used neither for training nor for validation."""
    features, labels = misleading_data(seed)
    is_validation = np.arange(N_LEARNED)[None] >= N_TRAIN
    probes = fit_probes(features[None, :N_LEARNED], labels[None, :N_LEARNED], is_validation, 2, config, (seed,))
    return float((probes.predict(features[None, N_LEARNED:])[0, 0] == labels[N_LEARNED:]).mean())


def test_a_loss_that_rises_before_it_falls_does_not_stop_a_probe() -> None:
    config = parse_probe("mlp:30")
    accuracies = [held_out_accuracy(config, seed) for seed in SEEDS]
    impatient = [held_out_accuracy(replace(config, patience=10), seed) for seed in SEEDS]
    assert max(impatient) < 0.75, "the data do not show the effect of early stopping"
    assert min(accuracies) > 0.9


def test_the_weights_with_the_best_validation_loss_are_kept() -> None:
    """If nothing generalises beyond the training examples, further training must not be worse than guessing."""
    features, labels = misleading_data(3)
    features = features[:, :4]
    is_validation = np.arange(N_LEARNED)[None] >= N_TRAIN
    config = parse_probe("mlp:30")
    probes = fit_probes(features[None, :N_LEARNED], labels[None, :N_LEARNED], is_validation, 2, config, (0,))
    log_probabilities = probes.predict_log_proba(features[None, N_TRAIN:N_LEARNED])[0, 0]
    loss = -log_probabilities[np.arange(N_LEARNED - N_TRAIN), labels[N_TRAIN:N_LEARNED]].mean()
    assert loss < np.log(2) + 0.05
