"""One site's arrays for a batch, cut to each entry's own pieces and words, on the device and then on the host."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby, repeat
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertology.recording.frame import Frame
from bertology.recording.shards import Array
from bertology.recording.sites import PIECE_AXES, WORD_AXES, shape_of


class _Part(NamedTuple):
    """Some layers from `first` on, (layer, batch, *axes), and the moment at which the device has made them."""

    first: int
    layers: Tensor
    made: torch.cuda.Event | None


class Unpadded:
    """One site's arrays for a batch: (layer, *axes) an entry, without padding.

    Batches are in order of length, so entries of one shape stand side by side and are copied together. Their blocks lie
    one after the other on the encoder's device until the batch is done: one transfer instead of many. Layers that come
    together are few numbers: they go to the host as they are, while the device works on the layers after them.
    """

    def __init__(self, frame: Frame, axes: tuple[str, ...], layers: int, *, half: bool) -> None:
        self._frame = frame
        self._axes = axes
        self._layers = layers
        self._kind = torch.float16 if half else torch.float32
        self._room: Tensor | None = None
        self._blocks: list[tuple[int, Tensor]] = []
        self._copied: list[int] = []
        self._parts: list[_Part] = []
        self._padded: Array | None = None
        self._cut: list[Array] = []

    def add(self, layer: int, values: Tensor) -> None:
        """Take layer `layer` out of padded values: (batch, *axes)."""
        if not self._blocks:
            if values.dtype == torch.float16:  # a reduction that asks for no more
                self._kind = torch.float16
            self._blocks = self._allocated(tuple(values.shape[1:]), values.device)
        for start, block in self._blocks:
            shape = block.shape[2:]
            block[:, layer] = values[(slice(start, start + block.shape[0]), *map(slice, shape))]
        self._copied.append(layer)

    def add_layers(self, first: int, layers: Tensor) -> None:
        """Take layers from `first` on out of padded values: (batch, layer, *axes)."""
        self._parts.append(_Part(first, layers.transpose(0, 1).contiguous(), _now(layers.device)))

    def _allocated(self, padded: tuple[int, ...], device: torch.device) -> list[tuple[int, Tensor]]:
        runs = [(shape, len(list(run))) for shape, run in groupby(self._shapes(padded))]
        sizes = [count * self._layers * math.prod(shape) for shape, count in runs]
        self._room = torch.empty(sum(sizes), dtype=self._kind, device=device)
        starts = accumulate((count for _, count in runs), initial=0)
        parts = zip(starts, runs, self._room.split(sizes), strict=False)
        return [(start, part.view(count, self._layers, *shape)) for start, (shape, count), part in parts]

    def _shapes(self, padded: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if not (PIECE_AXES | WORD_AXES).intersection(self._axes):
            return repeat(padded, len(self._frame.entries))
        return (shape_of(self._axes, padded, entry.pieces) for entry in self._frame.entries)

    def fetch(self) -> None:
        """Bring over the first layers of those that came together, and wait only for these."""
        if not self._parts:
            return
        first, layers, made = self._parts.pop(0)
        if self._padded is None:
            self._padded = padded = _empty((self._layers, *layers.shape[1:]), layers.dtype)
            shapes = enumerate(self._shapes(padded.shape[2:]))
            self._cut = [padded[(slice(None), entry, *map(slice, shape))] for entry, shape in shapes]
        with _from_then_on(made, layers.device):
            torch.from_numpy(self._padded[first : first + len(layers)]).copy_(layers)

    def arrays(self) -> list[Array]:
        """One array an entry."""
        while self._parts:
            self.fetch()
        copied = [] if self._room is None else self._unblocked(_on_host(self._room))
        for whole, own in zip(self._cut, copied, strict=False):
            whole[self._copied] = own[self._copied]
        return self._cut or copied

    def _unblocked(self, room: Array) -> list[Array]:
        blocks = (room[own.storage_offset() :][: own.numel()].reshape(own.shape) for _, own in self._blocks)
        return [array for block in blocks for array in block]


def _on_host(values: Tensor) -> Array:
    if values.device.type == "cpu":
        return values.numpy()
    found = _empty(tuple(values.shape), values.dtype)
    torch.from_numpy(found).copy_(values)
    return found


def _empty(shape: tuple[int, ...], kind: torch.dtype) -> Array:
    # NumPy asks the system for large pages, which are several times faster to fill for the first time.
    return np.empty(shape, np.float16 if kind == torch.float16 else np.float32)


def _now(device: torch.device) -> torch.cuda.Event | None:
    """The present moment of the device's work; None where the host waits for all of it anyway."""
    if device.type != "cuda":
        return None
    moment = torch.cuda.Event()
    moment.record(torch.cuda.current_stream(device))
    return moment


@contextmanager
def _from_then_on(moment: torch.cuda.Event | None, device: torch.device) -> Generator[None]:
    """What is asked of the device inside waits for that moment, and not for what was asked after it."""
    if moment is None:
        yield
        return
    stream = torch.cuda.Stream(device)
    stream.wait_event(moment)
    with torch.cuda.stream(stream):
        yield
