"""Sums and maxima over the ordinary pieces of a map without masks: they stand side by side, so slices will do.

A batch is in order of length, and most entries are [CLS] pieces [SEP]: entries whose ordinary pieces stand at the same
places are taken together, and no copy of a map is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry


@dataclass(frozen=True)
class Stretches:
    """Entries `rows` of a batch, alike in length and in where their ordinary and their special pieces stand."""

    rows: slice
    length: int
    pieces: tuple[slice, ...]
    special: tuple[slice, ...]


def stretches_of(entries: Sequence[Entry]) -> tuple[Stretches, ...]:
    """A batch as runs of entries alike."""
    found: list[Stretches] = []
    start = 0
    for key, run in groupby(entry.pieces.special.tobytes() for entry in entries):
        count = len(list(run))
        special = np.frombuffer(key, np.int32)
        pieces, others = (tuple(_stretches(special, ordinary)) for ordinary in (True, False))
        found.append(Stretches(slice(start, start + count), len(special), pieces, others))
        start += count
    return tuple(found)


def _stretches(special: np.ndarray[tuple[int], np.dtype[np.int32]], wanted: bool) -> Iterator[slice]:
    start = 0
    for ordinary, run in groupby(kind == Special.NONE for kind in special.tolist()):
        end = start + len(list(run))
        if ordinary is wanted:
            yield slice(start, end)
        start = end


def ordinary_sum(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, from): what each row puts on ordinary pieces."""
    return _over_ordinary(maps, stretches, lambda part: part.sum(-1), torch.add)


def ordinary_max(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, from): the most that each row puts on one ordinary piece; 0 where there is none."""
    return _over_ordinary(maps, stretches, lambda part: part.amax(-1), torch.maximum)


def special_max(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, from): the most that each row puts on one special piece; 0 where there is none."""
    return _over(maps, stretches, lambda alike: alike.special, lambda part: part.amax(-1), torch.maximum)


def received(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, to): what each piece gets from all real pieces together."""
    return torch.cat([maps[alike.rows, :, : alike.length].sum(-2) for alike in stretches])


def received_from_ordinary(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, to): what each piece gets from all ordinary pieces together."""
    return _over_ordinary(maps.transpose(-1, -2), stretches, lambda part: part.sum(-1), torch.add)


def _over_ordinary(
    maps: Tensor,
    stretches: tuple[Stretches, ...],
    within: Callable[[Tensor], Tensor],
    between: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    return _over(maps, stretches, lambda alike: alike.pieces, within, between)


def _over(
    maps: Tensor,
    stretches: tuple[Stretches, ...],
    chosen: Callable[[Stretches], tuple[slice, ...]],
    within: Callable[[Tensor], Tensor],
    between: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    found: list[Tensor] = []
    for alike in stretches:
        parts = [within(maps[alike.rows, ..., pieces]) for pieces in chosen(alike)]
        nothing = maps.new_zeros(alike.rows.stop - alike.rows.start, *maps.shape[1:3])
        found.append(reduce(between, parts) if parts else nothing)
    return torch.cat(found)
