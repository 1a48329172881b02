"""Sums of attention over chosen pairs of pieces: listed where they are few, or weighed all over a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.recording.fused import FusedRows

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import Marked


@dataclass(frozen=True)
class Pairs:
    """Pairs of pieces that count, each for one of several sums; made once a batch.

    `places` is (4, pair): batch row, source, target, and which sum, no pair twice for a sum. `weights`, (batch, sum,
    from, to), are further sums over all pairs, after the listed ones. `scale` is (batch, sum), of both: what every pair
    of that sum counts, besides its weight. Padding is in no pair and has no weight.
    """

    places: Tensor
    scale: Tensor
    size: int
    weights: Tensor | None = None

    @cached_property
    def listed(self) -> int:
        """How many sums are of listed pairs."""
        return self.scale.shape[1] - (0 if self.weights is None else self.weights.shape[1])

    def together(self, others: Sequence[Pairs]) -> Pairs:
        """These and others as one, unscaled: listed sums of all, then weighed sums of all. Made once."""
        key = tuple(map(id, others))
        if key not in self._together:
            self._together[key] = tuple(others), _joined([self, *others])
        return self._together[key][1]

    @cached_property
    def _together(self) -> dict[tuple[int, ...], tuple[tuple[Pairs, ...], Pairs]]:
        """By others, which are kept so that their names are theirs."""
        return {}

    @cached_property
    def marked(self) -> Sequence[Marked]:
        """The pairs as kernels on an accelerator take them."""
        from bertology.recording.kernel_calls import marked

        return marked(self.places, self.listed, (len(self.scale), self.size), self.weights)

    @cached_property
    def cells(self) -> tuple[Tensor, Tensor]:
        """(batch, cell) which cells of each map are listed, and (batch, cell, sum) 1 for the sums that each is in."""
        row, source, target, column = self.places
        batch = len(self.scale)
        listed, which = ((row * self.size + source) * self.size + target).unique(return_inverse=True)
        owner = listed // self.size**2
        counts = owner.bincount(minlength=batch)
        place = torch.arange(len(listed), device=listed.device) - (counts.cumsum(0) - counts)[owner]
        most = int(counts.max())
        cell = listed.new_zeros(batch, most)
        cell[owner, place] = listed % self.size**2
        inside = self.scale.new_zeros(batch, most, self.listed)
        inside[row, place[which], column] = 1
        return cell, inside


def _joined(several: Sequence[Pairs]) -> Pairs:
    begins = accumulate((own.listed for own in several[:-1]), initial=0)
    shifted = (torch.cat([own.places[:3], own.places[3:] + begin]) for own, begin in zip(several, begins, strict=True))
    places = torch.cat(list(shifted), 1)
    weights = [own.weights for own in several if own.weights is not None]
    sums = sum(own.scale.shape[1] for own in several)
    scale = several[0].scale.new_ones(len(several[0].scale), sums)
    # Weights are as large as maps: those of one site are not copied.
    joined = torch.cat(weights, 1) if len(weights) > 1 else next(iter(weights), None)
    return Pairs(places, scale, several[0].size, joined)


def pair_sums(layer: LayerActivations, pairs: Pairs) -> Tensor:
    """(batch, head, sum): attention over the pairs of each sum."""
    if isinstance(layer.rows, FusedRows):
        return layer.rows.pair_sums(pairs) * pairs.scale[:, None]
    maps = layer.attention
    found = _listed(maps, pairs)
    if pairs.weights is not None:
        found = torch.cat([found, weighed_sums(maps, pairs.weights)], -1)
    return found * pairs.scale.to(maps.dtype)[:, None]


def weighed_sums(maps: Tensor, weights: Tensor) -> Tensor:
    """(batch, head, sum): attention times each of the (batch, sum, from, to) weights."""
    # Both factors run along the map: the layout in which a product of a few long rows is fastest.
    return maps.flatten(2) @ weights.flatten(2).to(maps.dtype).transpose(1, 2)


def _listed(maps: Tensor, pairs: Pairs) -> Tensor:
    cell, inside = pairs.cells
    return maps.flatten(2).gather(-1, cell[:, None].expand(-1, maps.shape[1], -1)) @ inside.to(maps.dtype)
