"""Arrays of one site for a batch, without padding: collected on the device, then copied to the host."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertology.arrays import Array
from bertology.lazy import torch
from bertology.recording.sites import TOKEN_AXES, WORD_AXES, unpadded_shape

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch


class _LayerChunk(NamedTuple):
    """Layers from `first_layer` on, (layer, batch, *axes), and the event after which they are ready on the device."""

    first_layer: int
    layers: Tensor
    ready: torch.cuda.Event | None


class RaggedArrays:
    """Arrays of one site for a batch: (layer, *axes) per input.

    Batches are sorted by length, so that inputs of equal shape are adjacent and copied together, into one buffer on the
    device that is transferred once. Layers added together hold few numbers: they are transferred with padding, while
    the device computes the layers after them.
    """

    def __init__(self, batch: TokenBatch, axes: tuple[str, ...], layers: int, *, half_precision: bool) -> None:
        self._batch = batch
        self._axes = axes
        self._layers = layers
        self._dtype = torch.float16 if half_precision else torch.float32
        self._buffer: Tensor | None = None
        self._device_views: list[tuple[int, Tensor]] = []
        self._copied_layers: list[int] = []
        self._chunks: list[_LayerChunk] = []
        self._padded_array: Array | None = None
        self._host_views: list[Array] = []

    def add(self, layer: int, values: Tensor) -> None:
        """Add one layer from padded values, (batch, *axes)."""
        if not self._device_views:
            if values.dtype == torch.float16:  # a reduction that needs no more precision
                self._dtype = torch.float16
            self._device_views = self._allocate(tuple(values.shape[1:]), values.device)
        for start, view in self._device_views:
            shape = view.shape[2:]
            view[:, layer] = values[(slice(start, start + view.shape[0]), *map(slice, shape))]
        self._copied_layers.append(layer)

    def add_layers(self, first_layer: int, layers: Tensor) -> None:
        """Add layers from `first_layer` on from padded values, (batch, layer, *axes)."""
        self._chunks.append(_LayerChunk(first_layer, layers.transpose(0, 1).contiguous(), _record_event(layers.device)))

    def _allocate(self, padded_shape: tuple[int, ...], device: torch.device) -> list[tuple[int, Tensor]]:
        runs = [(shape, len(list(run))) for shape, run in groupby(self._shapes(padded_shape))]
        sizes = [count * self._layers * math.prod(shape) for shape, count in runs]
        self._buffer = torch.empty(sum(sizes), dtype=self._dtype, device=device)
        starts = accumulate((count for _, count in runs), initial=0)
        parts = zip(starts, runs, self._buffer.split(sizes), strict=False)
        return [(start, part.view(count, self._layers, *shape)) for start, (shape, count), part in parts]

    def _shapes(self, padded_shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if not (TOKEN_AXES | WORD_AXES).intersection(self._axes):
            return repeat(padded_shape, len(self._batch.inputs))
        return (unpadded_shape(self._axes, padded_shape, recorded.tokens) for recorded in self._batch.inputs)

    def transfer(self) -> None:
        """Copy the first chunk of layers to the host, waiting for this chunk only."""
        if not self._chunks:
            return
        first_layer, layers, ready = self._chunks.pop(0)
        if self._padded_array is None:
            self._padded_array = padded = _empty((self._layers, *layers.shape[1:]), layers.dtype)
            shapes = enumerate(self._shapes(padded.shape[2:]))
            self._host_views = [padded[(slice(None), row, *map(slice, shape))] for row, shape in shapes]
        with _stream_after(ready, layers.device):
            torch.from_numpy(self._padded_array[first_layer : first_layer + len(layers)]).copy_(layers)

    def arrays(self) -> list[Array]:
        """One array per input."""
        while self._chunks:
            self.transfer()
        copied = [] if self._buffer is None else self._split_buffer(_to_host(self._buffer))
        for view, array in zip(self._host_views, copied, strict=False):
            view[self._copied_layers] = array[self._copied_layers]
        return self._host_views or copied

    def _split_buffer(self, buffer: Array) -> list[Array]:
        runs = (buffer[view.storage_offset() :][: view.numel()].reshape(view.shape) for _, view in self._device_views)
        return [array for run in runs for array in run]


def _to_host(values: Tensor) -> Array:
    if values.device.type == "cpu":
        return values.numpy()
    array = _empty(tuple(values.shape), values.dtype)
    torch.from_numpy(array).copy_(values)
    return array


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> Array:
    # NumPy requests large pages from the system, which are several times faster to fill for the first time.
    return np.empty(shape, np.float16 if dtype == torch.float16 else np.float32)


def _record_event(device: torch.device) -> torch.cuda.Event | None:
    """An event after all work submitted to the device so far; None if the host waits for the device anyway."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


@contextmanager
def _stream_after(event: torch.cuda.Event | None, device: torch.device) -> Generator[None]:
    """A stream that waits for an event, and not for work submitted after it."""
    if event is None:
        yield
        return
    stream = torch.cuda.Stream(device)
    stream.wait_event(event)
    with torch.cuda.stream(stream):
        yield
