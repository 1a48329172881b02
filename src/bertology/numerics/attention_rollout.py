"""Attention rollout: attention fused over heads, mixed with the residual connection, multiplied over layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Fusion = Literal["mean", "max"]


def residual_attention(attention: Tensor, fusion: Fusion, residual: float) -> Tensor:
    """(..., from, to) weights with row sums of 1, from the attention of a layer's heads (..., head, from, to).

    The mean or maximum over heads makes up 1 - `residual` of each row, the token itself the rest.
    """
    weights = attention.mean(-3) if fusion == "mean" else attention.amax(-3)
    normalised = weights / weights.sum(-1, keepdim=True)
    return (1 - residual) * normalised + residual * torch.eye(
        normalised.shape[-1], dtype=normalised.dtype, device=normalised.device
    )


@dataclass
class AttentionRollout:
    """The contribution of every input token to every token, over the layers added so far.

    `matrix` is (..., from, to): the product of the layers' weights, the last layer first; None before the first layer.
    """

    matrix: Tensor | None = field(default=None, init=False)

    def add(self, attention: Tensor) -> Tensor:
        """Add a layer on top, and return the product."""
        self.matrix = attention if self.matrix is None else attention @ self.matrix
        return self.matrix
