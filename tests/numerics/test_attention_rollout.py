"""Products of layers equal NumPy's, and what stays in place stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention


def maps(layers: int, heads: int, size: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(size), size=(layers, heads, size)))


@pytest.mark.parametrize("fusion", ["mean", "max"])
@pytest.mark.parametrize("residual", [0.0, 0.3, 0.5])
def test_layers_multiply_the_last_one_first(fusion: Fusion, residual: float) -> None:
    drawn = maps(4, 3, 6)
    rollout = AttentionRollout()
    product = np.eye(6)
    for layer in drawn:
        found = rollout.add(residual_attention(layer, fusion, residual))
        weights = layer.numpy().mean(0) if fusion == "mean" else layer.numpy().max(0)
        weights = weights / weights.sum(1, keepdims=True)
        product = ((1 - residual) * weights + residual * np.eye(6)) @ product
        np.testing.assert_allclose(found.numpy(), product, atol=1e-12)
        np.testing.assert_allclose(found.sum(-1).numpy(), 1)


def test_half_and_half_is_the_papers_normalised_sum() -> None:
    weights = maps(1, 2, 5)[0]
    summed = weights.mean(0) + torch.eye(5, dtype=weights.dtype)
    torch.testing.assert_close(residual_attention(weights, "mean", 0.5), summed / summed.sum(-1, keepdim=True))


def test_all_that_stays_is_the_identity() -> None:
    torch.testing.assert_close(residual_attention(maps(1, 2, 5)[0], "max", 1.0), torch.eye(5, dtype=torch.float64))
