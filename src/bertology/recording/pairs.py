"""Sums of attention over chosen pairs of pieces: listed where they are few, or weighed all over a map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.recording.frame import Frame
from bertology.recording.fused import FusedRows
from bertology.recording.rows import rows_of

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import Marked


@dataclass(frozen=True)
class Pairs:
    """Pairs of pieces that count, each for one of several sums; made once a batch.

    `places` is (4, pair): batch row, source, target, and which sum, no pair twice for a sum. `scale` is (batch, sum):
    what every pair of that sum counts. `weights`, (batch, sum, from, to), are further sums over all pairs, after the
    listed ones.
    """

    places: Tensor
    scale: Tensor
    size: int
    weights: Tensor | None = None

    @cached_property
    def marked(self) -> Marked:
        """The pairs as bits on a map."""
        from bertology.recording.kernel_calls import marked

        batch, sums = self.scale.shape
        return marked(self.places, sums, (batch, self.size), self.weights)


def pair_sums(layer: LayerActivations, frame: Frame, pairs: Pairs) -> Tensor:
    """(batch, head, sum): attention over the pairs of each sum."""
    rows = rows_of(layer, frame) if layer.maps is None else None
    if isinstance(rows, FusedRows):
        from bertology.recording.kernel_calls import pair_sums as fused

        sums = fused(rows.asked, rows.normaliser, pairs.marked)
        scale = torch.nn.functional.pad(pairs.scale.to(sums.dtype), (0, sums.shape[-1] - pairs.scale.shape[1]), value=1)
        return sums * scale[:, None]
    maps = layer.attention
    found = _listed(maps, pairs)
    return found if pairs.weights is None else torch.cat([found, weighed_sums(maps, pairs.weights)], -1)


def weighed_sums(maps: Tensor, weights: Tensor) -> Tensor:
    """(batch, head, sum): attention times each of the (batch, sum, from, to) weights."""
    # Both factors run along the map: the layout in which a product of a few long rows is fastest.
    return maps.flatten(2) @ weights.flatten(2).to(maps.dtype).transpose(1, 2)


def _listed(maps: Tensor, pairs: Pairs) -> Tensor:
    batch, heads = maps.shape[:2]
    entry, source, target, column = pairs.places
    count = pairs.scale.shape[1]
    sums = maps.new_zeros(batch * count, heads)
    sums.index_add_(0, entry * count + column, maps[entry, :, source, target])
    return sums.view(batch, count, heads).transpose(1, 2) * pairs.scale.to(maps.dtype)[:, None]
