"""What is taken along the rows of a layer's maps: worked out when first asked for, once for all sites of a pass."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from bertology.encoder.attend import LayerActivations
from bertology.maths.logarithm import log2_in_place
from bertology.recording import compiled
from bertology.recording.frame import Frame
from bertology.recording.pairs import weighed_sums
from bertology.recording.stretches import Stretches, ordinary_sum, received, special_columns

LN_2 = math.log(2)
CELLS_AT_ONCE = 2**19
"""How many attention weights a processor takes at once: what its cache holds of them and of what is made of them."""


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
    def near(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a piece gives to itself, to the previous piece, to the next; 0 where there is none."""
        ...

    @property
    def to_kinds(self) -> Tensor:
        """(batch, head, source, kind): what real, ordinary and separating pieces together give to each of `KINDS`."""
        ...

    @property
    def distances(self) -> Tensor:
        """(batch, head, 4): attention times distance, in pieces and in words, over all pairs and over ordinary ones."""
        ...


def rows_of(layer: LayerActivations, frame: Frame) -> Rows:
    """The rows of this layer's maps, shared by all that ask for them."""
    if layer.rows is None:
        large = compiled.worth_compiling(layer.attention)
        layer.rows = (_LargeMapRows if large else _MapRows)(layer.attention, frame)
    return cast("Rows", layer.rows)


class _MapRows:
    """Rows of maps that are there."""

    def __init__(self, maps: Tensor, frame: Frame) -> None:
        self._maps = maps
        self._frame = frame

    @cached_property
    def ordinary(self) -> Tensor:
        return ordinary_sum(self._maps, self._frame.stretches)

    @cached_property
    def near(self) -> tuple[Tensor, Tensor, Tensor]:
        itself, after, before = (self._maps.diagonal(step, -2, -1) for step in (0, 1, -1))
        return itself, pad(before, (1, 0)), pad(after, (0, 1))

    @cached_property
    def to_kinds(self) -> Tensor:
        maps, frame = self._maps, self._frame
        kinds = frame.kinds.to(maps.dtype)
        everything = self._received @ kinds
        entry, source = frame.special_places
        given = maps[entry, :, source] @ kinds[entry]  # of special pieces, which are few
        special, separators = (
            torch.zeros_like(everything).index_add_(0, entry, own)
            for own in (given, given * kinds[entry, source, 1, None, None])
        )
        return torch.stack([everything, everything - special, separators], 2)

    @cached_property
    def _received(self) -> Tensor:
        return received(self._maps, self._frame.stretches)

    @cached_property
    def distances(self) -> Tensor:
        return weighed_sums(self._maps, self._frame.steps)

    @property
    def peak(self) -> Tensor:
        return self._along.peak

    @property
    def ordinary_peak(self) -> Tensor:
        return self._along.ordinary_peak

    @property
    def information(self) -> Tensor:
        return self._along.information

    @property
    def ordinary_information(self) -> Tensor:
        return self._along.ordinary_information

    @cached_property
    def _along(self) -> _Along:
        return _along(self._maps.detach(), self._frame.stretches)


class _LargeMapRows(_MapRows):
    """The same, compiled."""

    @cached_property
    def ordinary(self) -> Tensor:
        return self._peaks[0]

    @cached_property
    def distances(self) -> Tensor:
        return compiled.distances(self._maps, self._frame)

    @cached_property
    def _along(self) -> _Along:
        return _Along(*self._peaks[1:], *compiled.information(self._maps, self._frame))

    @cached_property
    def _received(self) -> Tensor:
        return compiled.received(self._maps, self._frame)

    @cached_property
    def _peaks(self) -> Tensor:
        return compiled.peaks(self._maps, self._frame)


class _Along(NamedTuple):
    """What is taken along whole rows, (batch, head, from); see `Rows`."""

    peak: Tensor
    ordinary_peak: Tensor
    information: Tensor
    ordinary_information: Tensor


def _along(maps: Tensor, stretches: tuple[Stretches, ...]) -> _Along:
    """A few heads at a time: on a processor what is made of them stays in its cache."""
    entries, heads, size, _ = maps.shape
    found = _Along(*maps.new_empty(len(_Along._fields), entries, heads, size).unbind(0))
    at_once = max(1, min(heads, CELLS_AT_ONCE // max(1, entries * size * size)))
    room = maps.new_empty(entries, at_once, size, size)
    for start in range(0, heads, at_once):
        some = slice(start, min(heads, start + at_once))
        _take(maps[:, some], stretches, room[:, : some.stop - start], _Along(*(each[:, some] for each in found)))
    return found


def _take(maps: Tensor, stretches: tuple[Stretches, ...], room: Tensor, found: _Along) -> None:
    """Of some heads. Special pieces are hidden, as a slice of each row would take up to ten times as long."""
    tiny = torch.finfo(maps.dtype).tiny
    torch.clamp(maps, min=tiny, out=room)
    hidden = [own for _, own in special_columns(room, stretches)]
    for own in hidden:
        own.zero_()
    found.ordinary_peak.copy_(torch.threshold(room.amax(-1), tiny, 0.0))
    found.peak.copy_(found.ordinary_peak)
    for own in hidden:
        own.fill_(1.0)  # whose logarithm is 0
    found.ordinary_information.copy_(log2_in_place(room).mul_(maps).sum(-1).mul_(-LN_2))
    found.information.copy_(found.ordinary_information)
    for rows, own in special_columns(maps, stretches):
        torch.maximum(found.peak[rows], own.amax(-1), out=found.peak[rows])
        found.information[rows] += torch.special.entr(own).sum(-1)
