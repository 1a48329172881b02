"""Arrays of one site for a batch, without padding: collected on the device, then copied to the host."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, groupby, repeat
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Array
from bertology.lazy import torch
from bertology.recording.sites import TOKEN_AXES, WORD_AXES, unpadded_shape

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch


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
        self._buffer_transfer: _Transfer | None = None
        self._device_views: list[tuple[int, Tensor]] = []
        self._copied_layers: list[int] = []
        self._chunks: list[tuple[int, _Transfer]] = []

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
        """Add layers from `first_layer` on from padded values, (batch, layer, *axes), and begin to transfer them."""
        self._chunks.append((first_layer, _Transfer(layers.transpose(0, 1).contiguous())))

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
        """Begin to copy the layers that were added one by one; nothing may be added afterwards."""
        if self._buffer is not None and self._buffer_transfer is None:
            self._buffer_transfer = _Transfer(self._buffer)

    def arrays(self) -> list[Array]:
        """One array per input; waits for the device."""
        self.transfer()
        padded: Array | None = None
        for first_layer, transfer in self._chunks:
            layers = transfer.wait()
            if padded is None:
                padded = _empty((self._layers, *layers.shape[1:]), layers.dtype)
            torch.from_numpy(padded[first_layer : first_layer + len(layers)]).copy_(layers)
        copied = [] if self._buffer_transfer is None else self._split_buffer(_own_array(self._buffer_transfer.wait()))
        if padded is None:
            return copied
        views = self._unpadded_views(padded)
        for view, array in zip(views, copied, strict=False):
            # Strongest words have more rows where attention was stored, the numbers of ties.
            view[self._copied_layers] = array[(self._copied_layers, *map(slice, view.shape[1:]))]
        return views

    def _unpadded_views(self, padded: Array) -> list[Array]:
        """The array of each input in a padded array, (layer, batch, *axes)."""
        by_input = list(padded.swapaxes(0, 1))
        if not (TOKEN_AXES | WORD_AXES).intersection(self._axes):
            return by_input
        shapes = self._shapes(padded.shape[2:])
        return [view[(slice(None), *map(slice, shape))] for view, shape in zip(by_input, shapes, strict=True)]

    def _split_buffer(self, buffer: Array) -> list[Array]:
        runs = (buffer[view.storage_offset() :][: view.numel()].reshape(view.shape) for _, view in self._device_views)
        return [array for run in runs for array in run]


class _Transfer:
    """Values on their way to the host: a copy that begins when all work submitted so far is done.

    It goes to pinned memory, on a stream of its own, so that neither the host nor the device waits for it.
    """

    def __init__(self, values: Tensor) -> None:
        self._values = values  # alive until the copy has ended
        self._host, self._done = values, None
        if values.device.type == "cuda":
            stream = _transfer_stream(values.device)
            stream.wait_stream(torch.cuda.current_stream(values.device))
            self._host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            with torch.cuda.stream(stream):
                self._host.copy_(values, non_blocking=True)
                self._done = torch.cuda.Event()
                self._done.record(stream)
        elif values.device.type != "cpu":
            self._host = values.cpu()

    def wait(self) -> Tensor:
        """The values on the host; on a GPU, in memory that is reused after this object."""
        if self._done is not None:
            self._done.synchronize()
        return self._host


@cache
def _transfer_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def _own_array(values: Tensor) -> Array:
    """The values as an array that is not pinned: pinned memory is scarce, and a recording may be large."""
    if not values.is_pinned():
        return values.numpy()
    array = _empty(tuple(values.shape), values.dtype)
    torch.from_numpy(array).copy_(values)
    return array


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> Array:
    # NumPy requests large pages from the system, which are several times faster to fill for the first time.
    return np.empty(shape, np.float16 if dtype == torch.float16 else np.float32)
