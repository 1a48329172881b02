"""Spearman's rank correlation of many rows at once, each over the places that count in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

FEWEST = 3
"""Two places always correlate perfectly."""
LEAST = 1e-30


def spearman(first: Tensor, second: Tensor, counted: Tensor, *, near: float = 0.0) -> Tensor:
    """(...,) from (..., place): -1 opposite order, 0 none, 1 the same order; ties share their mean rank.

    Values that differ by less than the share `near` of their mean are tied in part, the more the less they differ: the
    order of values that are all but equal is one of rounding. That takes a number for each pair of places. NaN where
    fewer than three places count, or where one side is the same everywhere, or nearly so.
    """
    ranked = [_near_ranks(values, counted, near) if near else _ranks(values, counted) for values in (first, second)]
    a, b = (_centred(ranks, counted) for ranks in ranked)
    lengths = (a.square().sum(-1) * b.square().sum(-1)).sqrt()
    defined = (counted.sum(-1) >= FEWEST) & (lengths > 0)
    return ((a * b).sum(-1) / lengths.where(defined, 1)).where(defined, float("nan"))


def _ranks(values: Tensor, counted: Tensor) -> Tensor:
    """The mean rank of each value; what does not count is below everything and shifts all others alike."""
    import torch

    shown = values.float().masked_fill(~counted, -torch.inf).contiguous()
    ordered = shown.sort(-1).values
    below, upto = (torch.searchsorted(ordered, shown, right=right) for right in (False, True))
    return (below + upto).float() / 2


def _near_ranks(values: Tensor, counted: Tensor, near: float) -> Tensor:
    """For each value how many are below it, less how many above, halved; one that is near counts in part."""
    shown = values.float() * counted
    mean = shown.abs().sum(-1, keepdim=True) / counted.sum(-1, keepdim=True).clamp(min=1)
    steps = (shown.unsqueeze(-1) - shown.unsqueeze(-2)) / (near * mean.unsqueeze(-1)).clamp(min=LEAST)
    pairs = counted.unsqueeze(-1) & counted.unsqueeze(-2)
    apart = (steps.abs() * pairs).amax((-1, -2), keepdim=True) >= 1
    return (steps.clamp(-1, 1) * pairs * apart).sum(-1) / 2


def _centred(ranks: Tensor, counted: Tensor) -> Tensor:
    mean = (ranks * counted).sum(-1, keepdim=True) / counted.sum(-1, keepdim=True).clamp(min=1)
    return (ranks - mean) * counted
