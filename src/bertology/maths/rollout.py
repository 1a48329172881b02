"""Layers of weights between the same n places: fused, mixed with what stays in place, multiplied layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

Fusion = Literal["mean", "max"]


def mixed(maps: Tensor, fusion: Fusion, residual: float) -> Tensor:
    """(..., from, to) shares that sum to 1, from the maps of a layer's heads (..., head, from, to).

    The heads' mean or largest weights make up 1 - `residual` of each row, the place itself the rest.
    """
    import torch

    weights = maps.mean(-3) if fusion == "mean" else maps.amax(-3)
    shares = weights / weights.sum(-1, keepdim=True)
    return (1 - residual) * shares + residual * torch.eye(shares.shape[-1], dtype=shares.dtype, device=shares.device)


@dataclass
class Rollout:
    """What each place has of every place of the first layer, the layers so far taken together.

    `rolled` is (..., from, to): the product of the layers' shares, the last one first; None before the first layer.
    """

    rolled: Tensor | None = field(default=None, init=False)

    def add(self, shares: Tensor) -> Tensor:
        """The product with one more layer on top."""
        self.rolled = shares if self.rolled is None else shares @ self.rolled
        return self.rolled
