"""Sums over the ordinary pieces of a map without masks: they stand side by side, so slices will do.

A batch is in order of length, and most entries are [CLS] pieces [SEP]: entries whose ordinary pieces stand at the same
places are taken together, and no copy of a map is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    return _sum(maps, stretches)


def special_columns(maps: Tensor, stretches: tuple[Stretches, ...]) -> Iterator[tuple[slice, Tensor]]:
    """Entries of a batch and what their maps have on special pieces that stand side by side, as views."""
    for alike in stretches:
        for pieces in alike.special:
            yield alike.rows, maps[alike.rows, ..., pieces]


def received(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, to): what each piece gets from all real pieces together."""
    return torch.cat([maps[alike.rows, :, : alike.length].sum(-2) for alike in stretches])


def received_from_ordinary(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    """(batch, head, to): what each piece gets from all ordinary pieces together."""
    return _sum(maps.transpose(-1, -2), stretches)


def _sum(maps: Tensor, stretches: tuple[Stretches, ...]) -> Tensor:
    found: list[Tensor] = []
    for alike in stretches:
        parts = [maps[alike.rows, ..., pieces].sum(-1) for pieces in alike.pieces]
        nothing = maps.new_zeros(alike.rows.stop - alike.rows.start, *maps.shape[1:3])
        found.append(reduce(torch.add, parts) if parts else nothing)
    return torch.cat(found)
