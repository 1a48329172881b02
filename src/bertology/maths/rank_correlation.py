"""Spearman's rank correlation of many rows at once, each over the places that count in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

FEWEST = 3
"""Two places always correlate perfectly."""


def spearman(first: Tensor, second: Tensor, counted: Tensor) -> Tensor:
    """(...,) from (..., place): -1 opposite order, 0 none, 1 the same order; ties share their mean rank.

    NaN where fewer than three places count, or where one side is the same everywhere.
    """
    a, b = (_centred(_ranks(values, counted), counted) for values in (first, second))
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


def _centred(ranks: Tensor, counted: Tensor) -> Tensor:
    mean = (ranks * counted).sum(-1, keepdim=True) / counted.sum(-1, keepdim=True).clamp(min=1)
    return (ranks - mean) * counted
