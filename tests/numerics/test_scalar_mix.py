"""The mixing weight is highest for the layer that encodes the label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from bertology.numerics import scalar_mix
from bertology.numerics.batched_classifier import UNUSED_LABEL, ClassifierConfig
from bertology.numerics.classifier_network import unpack_parameters
from bertology.numerics.lbfgs import ActiveProblems, LossFunction
from bertology.numerics.scalar_mix import LOG_WEIGHT_PENALTY, ScalarMixClassifiers, fit_scalar_mixes


def sample_data(n: int = 500, layers: int = 5, informative_layer: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, n)
    x = generator.normal(size=(layers, n, 8))
    x[informative_layer, np.arange(n), labels] += 3
    return x, labels


def test_mixing_weight_is_highest_at_the_informative_layer() -> None:
    x, labels = sample_data()
    gold = np.stack([labels, labels])
    train = np.where(np.arange(500) < 300, gold, UNUSED_LABEL)
    mixes = fit_scalar_mixes(x, train, 3, ClassifierConfig(l2_penalties=(1e-3,)), seeds=(0, 1))
    np.testing.assert_allclose(mixes.mixing_weights.sum(1), 1, rtol=1e-5)
    assert (mixes.mixing_weights.argmax(1) == 3).all() and (mixes.mixing_weights[:, 3] > 0.7).all()
    assert (mixes.predict(x) == gold)[:, 300:].mean() > 0.9


def test_one_layer_equals_a_plain_classifier() -> None:
    x, labels = sample_data()
    mixes = fit_scalar_mixes(
        x[3:4], labels[None], 3, ClassifierConfig(l2_penalties=(1e-2,), max_iterations=300, tolerance=1e-5), seeds=(0,)
    )
    plain = LogisticRegression(C=1 / (1e-2 * 500), max_iter=1000).fit(x[3] - x[3].mean(0), labels)
    assert (mixes.predict(x[3:4])[0] == plain.predict(x[3] - x[3].mean(0))).mean() > 0.98
    np.testing.assert_allclose(mixes.mixing_weights, 1)


def loss_by_definition(mixes: ScalarMixClassifiers, x: np.ndarray, labels: np.ndarray, parameters: Tensor) -> Tensor:
    """Cross-entropy, plus half the penalties of the squared weights and of the squared log mixing weights."""
    config, layers = mixes.config, len(x)
    features = (torch.from_numpy(x).float() - mixes.mean) / mixes.scale
    hidden = torch.einsum("l,lef->ef", parameters[:layers].softmax(0), features).T
    parts = unpack_parameters(config, parameters[None, None, layers:], x.shape[-1], mixes.classes)
    squared = torch.zeros(())
    for index in range(0, len(parts), 2):
        weights, bias = parts[index][0, 0], parts[index + 1][0, 0]
        hidden = weights @ hidden + bias[:, None]
        squared = squared + weights.square().sum()
    cross_entropy = torch.nn.functional.cross_entropy(hidden.T, torch.from_numpy(labels))
    penalties = config.l2_penalties[0] * squared + LOG_WEIGHT_PENALTY * parameters[:layers].square().sum()
    return cross_entropy + penalties / 2


@pytest.mark.parametrize("config", [ClassifierConfig(), ClassifierConfig("rank", (4,))], ids=lambda config: config.name)
def test_the_loss_and_its_gradient_are_those_of_the_definition(
    config: ClassifierConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, labels = sample_data(n=60, layers=3, informative_layer=1)
    minimised: list[LossFunction] = []

    def keep_start(objective: LossFunction, start: Tensor, *_: object) -> Tensor:
        minimised.append(objective)
        return start

    monkeypatch.setattr(scalar_mix, "minimise", keep_start)
    mixes = fit_scalar_mixes(x, labels[None], 3, replace(config, l2_penalties=(0.3,)), seeds=(0,))
    shape = mixes.parameters.shape
    parameters = torch.randn(shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
    loss, _, gradient = minimised[0](parameters.detach(), ActiveProblems(torch.arange(1), torch.arange(1)))
    expected = loss_by_definition(mixes, x, labels, parameters[0, 0])
    torch.testing.assert_close(loss[0, 0], expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, parameters)[0], rtol=1e-4, atol=1e-5)


def test_every_step_decreases_the_loss() -> None:
    x, labels = sample_data(n=120, layers=3, informative_layer=1)
    losses: list[float] = []
    for iterations in range(8):
        config = ClassifierConfig(l2_penalties=(1e-2,), max_iterations=iterations, tolerance=0.0)
        mixes = fit_scalar_mixes(x, labels[None], 3, config, seeds=(0,))
        losses.append(float(loss_by_definition(mixes, x, labels, mixes.parameters[0, 0])))
    assert losses == sorted(losses, reverse=True), losses


def test_layers_with_long_vectors_dominate_unless_scaled() -> None:
    x, labels = sample_data(informative_layer=1)
    x[4] = 20 * x[1]  # the same labels in longer vectors
    config = ClassifierConfig(l2_penalties=(1e-2,))
    raw = fit_scalar_mixes(x, labels[None], 3, config, seeds=(0,)).mixing_weights[0]
    scaled = fit_scalar_mixes(x, labels[None], 3, config, seeds=(0,), scale_each_layer=True).mixing_weights[0]
    assert raw[4] > raw[1] + 0.1
    np.testing.assert_allclose(scaled[1], scaled[4], atol=0.02)


def test_classifiers_with_hidden_units() -> None:
    x, labels = sample_data()
    mixes = fit_scalar_mixes(x, labels[None], 3, ClassifierConfig("mlp", (8,), l2_penalties=(1e-3,)), seeds=(0,))
    assert mixes.mixing_weights[0].argmax() == 3
    assert (mixes.predict(x)[0] == labels).mean() > 0.9
