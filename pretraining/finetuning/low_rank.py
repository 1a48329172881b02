"""Low-rank fine-tuning: each matrix is its base plus a product of two factors (Hu et al. 2021).

Biases, layer norms and the task head are trained in full; the embeddings are frozen. The trained factors are stored
without truncation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, register_parametrization

PARAMETRISED = ".parametrizations."
"""Part of the name of every parameter under torch's parametrisation."""


class LowRank(nn.Module):
    """Adds left (rows, rank) times right (rank, columns) to a frozen weight; initially nothing, because left is 0."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.zeros(rows, rank))
        self.right = nn.Parameter(torch.randn(rank, columns) / columns**0.5)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight plus the product."""
        return weight + self.left @ self.right


def add_low_rank_factors(encoder: nn.Module, rank: int) -> None:
    """Freeze the matrix of every linear layer and add trainable factors of this rank."""
    for module in list(encoder.modules()):
        if isinstance(module, nn.Linear):
            module.weight.requires_grad_(False)
            register_parametrization(module, "weight", LowRank(module.out_features, module.in_features, rank))


def low_rank_factors(model: nn.Module) -> Iterator[tuple[str, LowRank]]:
    """The factors in a model, each with the name of its weight in the base."""
    for name, module in model.named_modules():
        if is_parametrized(module, "weight"):
            yield f"{name}.weight", cast("Any", module).parametrizations.weight[0]
