"""The variational code: the uniform code for what is not told, little for what is, and a known divergence."""

from __future__ import annotations

import numpy as np
import torch

from bertology.maths.variational_classifier import VariationalRecipe, _Layer, code_lengths  # type: ignore[attr-defined]  # one layer alone is compared with its formula


def test_told_labels_are_cheap_and_others_cost_the_uniform_code() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 600)
    x = generator.normal(size=(2, 600, 12))
    x[0, np.arange(600), labels] += 6
    other = generator.integers(0, 3, 600)
    for sizes in ((), (16,)):
        code = code_lengths(x, np.stack([labels, other]), 3, VariationalRecipe(sizes), seeds=(0, 0))
        total = (code.model + code.data) / (600 * np.log(3))
        assert total[0, 0] < 0.1
        np.testing.assert_allclose([total[0, 1], total[1, 0], total[1, 1]], 1, atol=0.03)


def test_more_labels_spend_more_on_the_model() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(1, 2000, 10))
    labels = (x[0, :, :4] + 0.3 * generator.normal(size=(2000, 4))).argmax(1)
    few = code_lengths(x[:, :200], labels[None, :200], 4, VariationalRecipe(), seeds=(0,))
    many = code_lengths(x, labels[None], 4, VariationalRecipe(), seeds=(0,))
    assert many.model[0, 0] > few.model[0, 0]
    assert (many.model + many.data)[0, 0] / 2000 < (few.model + few.data)[0, 0] / 200


def test_the_divergence_of_weights_is_that_of_normal_distributions() -> None:
    layer = _Layer(1, (3,), 5, 2, first=True)
    layer.factor_spread.data.fill_(40)  # a factor that is nothing but noise costs nothing
    weights = torch.distributions.Normal(layer.weights, (layer.weight_spread / 2).exp())
    bias = torch.distributions.Normal(layer.bias, (layer.bias_spread / 2).exp())
    expected = sum(
        torch.distributions.kl_divergence(own, torch.distributions.Normal(0.0, 1.0)).sum() for own in (weights, bias)
    )
    torch.testing.assert_close(layer.divergence()[0, 0], expected, atol=1e-3, rtol=1e-4)
