"""Probes with hidden units do not stop too early; each type has one control label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertology.analyses.probing.fitting import assign_control_labels, fit_probes, parse_probe
from bertology.arrays import Array
from bertology.numerics.batched_classifier import ClassifierConfig

SEEDS = (0, 1, 2)
N_EXAMPLES, N_FITTED, N_TRAIN = 1000, 750, 600  # fitted: training and validation examples


def misleading_data(seed: int) -> tuple[Array, Array]:
    """(example, feature) features and (example,) labels.

    In all examples the label is the parity of three features, which is learned late. Four other features equal it up
    to noise in nine of ten training examples, but in three of ten validation and test examples, whose loss rises first.
    """
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, N_EXAMPLES)
    signs = 2 * labels - 1
    is_informative = generator.random(N_EXAMPLES) < np.where(np.arange(N_EXAMPLES) < N_TRAIN, 0.9, 0.3)
    parity = generator.choice([-1, 1], (N_EXAMPLES, 3))
    parity[:, 2] = parity[:, 0] * parity[:, 1] * signs
    direct = np.where(is_informative, signs, -signs)[:, None] + 0.5 * generator.normal(size=(N_EXAMPLES, 4))
    noisy_parity = parity + 0.2 * generator.normal(size=(N_EXAMPLES, 3))
    return np.concatenate([direct, noisy_parity], 1).astype(np.float32), labels


def held_out_accuracy(config: ClassifierConfig, seed: int) -> float:
    """The accuracy on examples used neither for training nor for validation."""
    features, labels = misleading_data(seed)
    is_validation = np.arange(N_FITTED)[None] >= N_TRAIN
    probes = fit_probes(features[None, :N_FITTED], labels[None, :N_FITTED], is_validation, 2, config, (seed,))
    return float((probes.predict(features[None, N_FITTED:])[0, 0] == labels[N_FITTED:]).mean())


def test_a_loss_that_rises_before_it_falls_does_not_stop_a_probe() -> None:
    config = parse_probe("mlp:30")
    accuracies = [held_out_accuracy(config, seed) for seed in SEEDS]
    impatient = [held_out_accuracy(replace(config, patience=10), seed) for seed in SEEDS]
    assert max(impatient) < 0.75, "the data do not show the effect of early stopping"
    assert min(accuracies) > 0.9


def test_the_weights_with_the_best_validation_loss_are_used() -> None:
    """If nothing generalises beyond the training examples, further training must not be worse than guessing."""
    features, labels = misleading_data(3)
    features = features[:, :4]
    is_validation = np.arange(N_FITTED)[None] >= N_TRAIN
    config = parse_probe("mlp:30")
    probes = fit_probes(features[None, :N_FITTED], labels[None, :N_FITTED], is_validation, 2, config, (0,))
    log_probabilities = probes.predict_log_proba(features[None, N_TRAIN:N_FITTED])[0, 0]
    loss = -log_probabilities[np.arange(N_FITTED - N_TRAIN), labels[N_TRAIN:N_FITTED]].mean()
    assert loss < np.log(2) + 0.05


def test_a_type_has_one_label_and_labels_have_their_proportions() -> None:
    types = np.array([f"t{i % 5000}" for i in range(10_000)], object)
    labels = assign_control_labels(types, 3, np.array([0.2, 0.7]))
    np.testing.assert_array_equal(labels[:5000], labels[5000:])
    np.testing.assert_allclose(np.bincount(labels) / 10_000, [0.2, 0.5, 0.3], atol=0.02)


def test_another_seed_gives_another_labelling() -> None:
    types = np.array([f"t{i}" for i in range(200)], object)
    first, second = (assign_control_labels(types, seed, np.array([0.5])) for seed in (0, 1))
    assert 0.35 < (first == second).mean() < 0.65
