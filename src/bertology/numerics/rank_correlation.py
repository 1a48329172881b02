"""Spearman correlation of many rows at once, each over its masked values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

MIN_VALUES = 3
"""Two values always correlate perfectly."""
MIN_DIVISOR = 1e-30


def spearman(first: Tensor, second: Tensor, mask: Tensor, *, tie_tolerance: float = 0.0) -> Tensor:
    """(...,) Spearman correlation along the last axis, over the values in `mask`; ties get their mean rank.

    With `tie_tolerance`, values that differ by less than this fraction of their mean are partly tied, as the order of
    nearly equal values is due to rounding; this needs memory for all pairs of values. NaN for fewer than three values,
    or if one side is constant, or nearly so.
    """
    ranked = [
        _soft_ranks(values, mask, tie_tolerance) if tie_tolerance else _ranks(values, mask)
        for values in (first, second)
    ]
    a, b = (_centre(ranks, mask) for ranks in ranked)
    lengths = (a.square().sum(-1) * b.square().sum(-1)).sqrt()
    defined = (mask.sum(-1) >= MIN_VALUES) & (lengths > 0)
    return ((a * b).sum(-1) / lengths.where(defined, 1)).where(defined, float("nan"))


def _ranks(values: Tensor, mask: Tensor) -> Tensor:
    """The mean rank of each value; masked values rank below all others, and shift them equally."""
    masked = values.float().masked_fill(~mask, -torch.inf).contiguous()
    ordered = masked.sort(-1).values
    below, up_to = (torch.searchsorted(ordered, masked, right=right) for right in (False, True))
    return (below + up_to).float() / 2


def _soft_ranks(values: Tensor, mask: Tensor, tie_tolerance: float) -> Tensor:
    """Half the number of values below each value minus those above; nearly equal values count in part."""
    masked = values.float() * mask
    mean = masked.abs().sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
    steps = (masked.unsqueeze(-1) - masked.unsqueeze(-2)) / (tie_tolerance * mean.unsqueeze(-1)).clamp(min=MIN_DIVISOR)
    pairs = mask.unsqueeze(-1) & mask.unsqueeze(-2)
    has_distinct = (steps.abs() * pairs).amax((-1, -2), keepdim=True) >= 1
    return (steps.clamp(-1, 1) * pairs * has_distinct).sum(-1) / 2


def _centre(ranks: Tensor, mask: Tensor) -> Tensor:
    mean = (ranks * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
    return (ranks - mean) * mask
