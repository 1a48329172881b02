"""What is taken along the rows of a layer's maps: worked out when first asked for, once for all sites of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol, cast

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.maths.logarithm import log_in_place
from bertology.recording.frame import Frame
from bertology.recording.fused import fused_rows
from bertology.recording.stretches import Stretches, ordinary_max, ordinary_sum, received, special_max

CELLS_AT_ONCE = 2**18
"""How many attention weights are taken at once: a megabyte of them, which a processor's cache holds."""


class Rows(Protocol):
    """Sums and maxima over the targets of each source piece, over all of them or ordinary ones: (batch, head, from)."""

    @property
    def ordinary(self) -> Tensor:
        """The share of attention on ordinary pieces."""
        ...

    @property
    def peak(self) -> Tensor:
        """The most that one piece gets."""
        ...

    @property
    def ordinary_peak(self) -> Tensor:
        """The most that one ordinary piece gets; 0 where there is none."""
        ...

    @property
    def information(self) -> Tensor:
        """The sum of -a ln a over all targets, a being attention."""
        ...

    @property
    def ordinary_information(self) -> Tensor:
        """The sum of -a ln a over ordinary targets."""
        ...

    @property
    def to_kinds(self) -> Tensor:
        """(batch, head, kind): what all real pieces together give to each of `KINDS`."""
        ...


def rows_of(layer: LayerActivations, frame: Frame) -> Rows:
    """The rows of this layer's maps, shared by all that ask for them."""
    if layer.rows is None:
        layer.rows = fused_rows(layer, frame) or _MapRows(layer, frame)
    return cast("Rows", layer.rows)


class _MapRows:
    """Rows of maps that are there."""

    def __init__(self, layer: LayerActivations, frame: Frame) -> None:
        self._layer = layer
        self._frame = frame
        self._stretches = frame.stretches

    @cached_property
    def ordinary(self) -> Tensor:
        return ordinary_sum(self._layer.attention, self._stretches)

    @cached_property
    def to_kinds(self) -> Tensor:
        maps = self._layer.attention
        return received(maps, self._stretches) @ self._frame.kinds.to(maps.dtype)

    @cached_property
    def ordinary_peak(self) -> Tensor:
        return ordinary_max(self._layer.attention, self._stretches)

    @cached_property
    def peak(self) -> Tensor:
        return torch.maximum(self.ordinary_peak, special_max(self._layer.attention, self._stretches))

    @property
    def information(self) -> Tensor:
        return self._information[0]

    @property
    def ordinary_information(self) -> Tensor:
        return self._information[1]

    @cached_property
    def _information(self) -> tuple[Tensor, Tensor]:
        maps, scores = self._layer.attention, self._layer.scores
        if scores is not None:
            # With ln a = s - c, c the logarithm of the softmax's sum, no logarithm of a whole map has to be taken.
            scores = scores.to(maps.dtype)
            sums = scores.amax(-1) - self.peak.log()
            ordinary, special = _products(maps, scores, self._stretches)
            found = sums - ordinary - special, sums * self.ordinary - ordinary
            if bool(found[0].isfinite().all()):  # not so where a mask is minus infinity
                return found
        return _by_logarithms(maps, self._stretches)


def _products(maps: Tensor, scores: Tensor, stretches: tuple[Stretches, ...]) -> tuple[Tensor, Tensor]:
    """(batch, head, from): the sums of attention times score over ordinary pieces, and over special ones."""
    found = maps.new_zeros(maps.shape[:3]), maps.new_zeros(maps.shape[:3])
    space = maps.new_empty(CELLS_AT_ONCE)
    for alike in stretches:
        entries = alike.rows.stop - alike.rows.start
        for sums, places in zip(found, (alike.pieces, alike.special), strict=True):
            for pieces in places:
                size = entries * maps.shape[2] * (pieces.stop - pieces.start)
                for heads in _at_once(maps.shape[1], size):
                    own = maps[alike.rows, heads, :, pieces]
                    if own.numel() > len(space):
                        space = maps.new_empty(own.numel())
                    products = torch.mul(
                        own, scores[alike.rows, heads, :, pieces], out=space[: own.numel()].view_as(own)
                    )
                    sums[alike.rows, heads] += products.sum(-1)
    return found


def _at_once(heads: int, cells: int) -> Iterator[slice]:
    """A few heads at a time, of so many cells each: on a processor what is made of them stays in its cache."""
    count = max(1, min(heads, CELLS_AT_ONCE // max(1, cells)))
    for start in range(0, heads, count):
        yield slice(start, start + count)


def _by_logarithms(maps: Tensor, stretches: tuple[Stretches, ...]) -> tuple[Tensor, Tensor]:
    entries, heads, size, _ = maps.shape
    everywhere, ordinary = maps.new_empty(maps.shape[:3]), maps.new_empty(maps.shape[:3])
    for some in _at_once(heads, entries * size * size):
        own = maps[:, some]
        products = log_in_place(own.clamp(min=torch.finfo(maps.dtype).tiny)).mul_(own)
        everywhere[:, some] = products.sum(-1)
        ordinary[:, some] = ordinary_sum(products, stretches)
    return everywhere.neg_(), ordinary.neg_()
