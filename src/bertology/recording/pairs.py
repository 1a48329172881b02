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

    @cached_property
    def cells(self) -> tuple[Tensor, Tensor]:
        """(batch, cell) which cells of each map are listed, and (batch, cell, sum) what each counts in a sum."""
        row, source, target, column = self.places
        batch, sums = self.scale.shape
        listed, which = ((row * self.size + source) * self.size + target).unique(return_inverse=True)
        owner = listed // self.size**2
        counts = owner.bincount(minlength=batch)
        place = torch.arange(len(listed), device=listed.device) - (counts.cumsum(0) - counts)[owner]
        most = int(counts.max())
        cell = listed.new_zeros(batch, most)
        cell[owner, place] = listed % self.size**2
        share = self.scale.new_zeros(batch, most, sums)
        share[row, place[which], column] = self.scale[row, column]
        return cell, share


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
    cell, share = pairs.cells
    weights = maps.flatten(2).gather(-1, cell[:, None].expand(-1, maps.shape[1], -1))
    return weights @ share.to(maps.dtype)
