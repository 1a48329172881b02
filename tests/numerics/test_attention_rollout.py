"""Rollout equals the product of the layers in NumPy, and a residual of 1 is the identity."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention


def random_attention(layers: int, heads: int, size: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(size), size=(layers, heads, size)))


@pytest.mark.parametrize("fusion", ["mean", "max"])
@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5])
def test_rollout_is_the_product_of_the_layers(fusion: Fusion, residual: float) -> None:
    attention = random_attention(4, 3, 6)
    rollout = AttentionRollout()
    expected = np.eye(6)
    for layer in attention:
        rolled = rollout.add(residual_attention(layer, fusion, residual))
        weights = layer.numpy().mean(0) if fusion == "mean" else layer.numpy().max(0)
        weights = weights / weights.sum(1, keepdims=True)
        expected = ((1 - residual) * weights + residual * np.eye(6)) @ expected
        np.testing.assert_allclose(rolled.numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(rolled.sum(-1).numpy(), 1)


def test_a_residual_of_one_half_is_the_normalised_sum_of_the_paper() -> None:
    weights = random_attention(1, 2, 5)[0]
    summed = weights.mean(0) + torch.eye(5, dtype=weights.dtype)
    torch.testing.assert_close(residual_attention(weights, "mean", 0.5), summed / summed.sum(-1, keepdim=True))


def test_a_residual_of_one_is_the_identity() -> None:
    torch.testing.assert_close(
        residual_attention(random_attention(1, 2, 5)[0], "max", 1.0), torch.eye(5, dtype=torch.float64)
    )
