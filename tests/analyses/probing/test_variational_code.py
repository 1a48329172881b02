"""The variational code: the uniform code for labels not in the features, little for others, and a known divergence."""

from __future__ import annotations

import numpy as np
import torch

from bertology.analyses.probing.variational_code import (
    VariationalConfig,
    _VariationalLayer,  # pyright: ignore[reportPrivateUsage]  # its divergence is compared with the formula
    variational_code_lengths,
)


def test_encoded_labels_are_cheap_and_others_cost_the_uniform_code() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 600)
    x = generator.normal(size=(2, 600, 12))
    x[0, np.arange(600), labels] += 6
    other_labels = generator.integers(0, 3, 600)
    for sizes in ((), (16,)):
        code = variational_code_lengths(x, np.stack([labels, other_labels]), 3, VariationalConfig(sizes), seeds=(0, 0))
        total = (code.weight_nats + code.label_nats) / (600 * np.log(3))
        assert total[0, 0] < 0.1
        np.testing.assert_allclose([total[0, 1], total[1, 0], total[1, 1]], 1, atol=0.03)


def test_with_more_labels_more_nats_are_spent_on_the_weights() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1, 2000, 10))
    labels = (x[0, :, :4] + 0.3 * generator.normal(size=(2000, 4))).argmax(1)
    few = variational_code_lengths(x[:, :200], labels[None, :200], 4, VariationalConfig(), seeds=(0,))
    many = variational_code_lengths(x, labels[None], 4, VariationalConfig(), seeds=(0,))
    assert many.weight_nats[0, 0] > few.weight_nats[0, 0]
    per_label = [(code.weight_nats + code.label_nats)[0, 0] / n for code, n in ((many, 2000), (few, 200))]
    assert per_label[0] < per_label[1]


def test_the_divergence_of_weights_is_that_of_normal_distributions() -> None:
    layer = _VariationalLayer(1, (3,), 5, 2, is_first=True)
    layer.factor_log_variance.data.fill_(40)  # a factor of pure noise costs nothing
    weights = torch.distributions.Normal(layer.weights, (layer.weight_log_variance / 2).exp())
    bias = torch.distributions.Normal(layer.bias, (layer.bias_log_variance / 2).exp())
    prior = torch.distributions.Normal(0.0, 1.0)
    expected = sum(torch.distributions.kl_divergence(posterior, prior).sum() for posterior in (weights, bias))
    torch.testing.assert_close(layer.divergence()[0, 0], expected, atol=1e-3, rtol=1e-4)
