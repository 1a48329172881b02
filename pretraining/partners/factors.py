"""Low-rank fine-tuning: each matrix is its base plus a product of two factors (Hu et al. 2021).

Biases, layer norms and the head of the task are learnt whole; the embeddings stay as they are. What is learnt is what
is stored: nothing is cut afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, register_parametrization

PARAMETRISED = ".parametrizations."
"""Stands in the name of every parameter that torch's parametrisation holds."""


class LowRank(nn.Module):
    """Adds left (rows, rank) times right (rank, columns) to a still weight; nothing at first, because left is 0."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.zeros(rows, rank))
        self.right = nn.Parameter(torch.randn(rank, columns) / columns**0.5)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight plus the product."""
        return weight + self.left @ self.right


def factorise(encoder: nn.Module, rank: int) -> None:
    """Let every linear layer of an encoder learn factors of this rank in place of its matrix."""
    for module in list(encoder.modules()):
        if isinstance(module, nn.Linear):
            module.weight.requires_grad_(False)
            low = LowRank(module.out_features, module.in_features, rank)
            register_parametrization(module, "weight", low)


def factors(model: nn.Module) -> Iterator[tuple[str, LowRank]]:
    """The name of each weight that has factors, as the base calls it, and its factors."""
    for name, module in model.named_modules():
        if is_parametrized(module, "weight"):
            held = cast("Any", module).parametrizations.weight[0]
            yield f"{name}.weight", held
