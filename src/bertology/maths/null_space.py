"""The part of weights over vectors that the weighted sum depends on (the rest lies in the vectors' left null space)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-6
"""Singular values below this share of the largest are rounding: the vectors were computed in single precision."""


def effective(weights: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (..., row, n) over vectors (..., n, size) less all that no weighted sum shows, and the vectors' rank.

    `effective @ vectors` equals `weights @ vectors`, and no smaller weights have the same sums. With at least as many
    independent vectors as n the weights are returned as they are.
    """
    import torch

    left, values, _ = torch.linalg.svd(vectors.double(), full_matrices=False)
    kept = values > TOLERANCE * values[..., :1].clamp(min=torch.finfo(values.dtype).tiny)
    basis = left * kept.unsqueeze(-2)
    return (weights.double() @ basis) @ basis.transpose(-1, -2), kept.sum(-1)
