"""Collects what the sites ask for from one forward pass, cut to each entry's own pieces while a layer is at hand."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, groupby, repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Output
from bertology.recording.frame import Frame
from bertology.recording.fused import FusedLayers, mapless, possible
from bertology.recording.shards import Array
from bertology.recording.sites import HIDDEN, PIECE_AXES, WORD_AXES, RawSite, ReducedSite, Site, shape_of
from bertology.recording.wanted import Wanted
from bertology.recording.word_states import word_weights


class Unpadded:
    """One site's arrays for a batch: (layer, *axes) an entry, without padding.

    Batches are in order of length, so entries of one shape stand side by side and are copied together. Their blocks lie
    one after the other on the encoder's device until the batch is done: one transfer instead of many.
    """

    def __init__(self, frame: Frame, axes: tuple[str, ...], layers: int, *, half: bool) -> None:
        self._frame = frame
        self._axes = axes
        self._layers = layers
        self._kind = torch.float16 if half else torch.float32
        self._room: Tensor | None = None
        self._blocks: list[tuple[int, Tensor]] = []

    def add(self, layer: int, values: Tensor) -> None:
        """Take layer `layer` out of padded values: (batch, *axes)."""
        self.add_layers(layer, values.unsqueeze(1))

    def add_layers(self, first: int, layers: Tensor) -> None:
        """Take layers from `first` on out of padded values: (batch, layer, *axes)."""
        if not self._blocks:
            if layers.dtype == torch.float16:  # a reduction that asks for no more
                self._kind = torch.float16
            self._blocks = self._allocated(tuple(layers.shape[2:]), layers.device)
        count = layers.shape[1]
        for start, block in self._blocks:
            shape = block.shape[2:]
            rows = slice(start, start + block.shape[0])
            block[:, first : first + count] = layers[(rows, slice(None), *(slice(size) for size in shape))]

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

    def arrays(self) -> list[Array]:
        """One array an entry."""
        if self._room is None:
            return []
        values = _on_host(self._room)
        blocks = (values[own.storage_offset() :][: own.numel()].reshape(own.shape) for _, own in self._blocks)
        return [array for block in blocks for array in block]


def _on_host(values: Tensor) -> Array:
    if values.device.type == "cpu":
        return values.numpy()
    # NumPy asks the system for large pages, which are several times faster to fill for the first time.
    found = np.empty(values.shape, np.float16 if values.dtype == torch.float16 else np.float32)
    torch.from_numpy(found).copy_(values)
    return found


class Catch:
    """The arrays of every site for one batch, filled as the forward pass goes through the layers."""

    def __init__(self, frame: Frame, sites: Sequence[Site], layers: int, *, half: bool) -> None:
        self._frame = frame
        self._half = half
        self._outputs = [s for s in sites if isinstance(s, RawSite) and s.axes[0] != "layer"]
        self._raw = [s for s in sites if isinstance(s, RawSite) and s.axes[0] == "layer"]
        reduced = [s for s in sites if isinstance(s, ReducedSite)]
        self._reduced = [s for s in reduced if not s.whole]
        self._whole = [s for s in reduced if s.whole]
        self._layers = layers
        self._fused: FusedLayers | None = None  # what was taken so far of layers without maps
        self._first_fused = 0
        self._maps: list[Tensor] = []  # of all layers of this batch, only where a whole site wants them
        self._prepared = {s.identity: s.prepare(frame) if s.prepare else None for s in reduced}
        self._found = {s.identity: Unpadded(frame, s.axes[1:], layers, half=half) for s in self._raw}
        self._found |= {s.identity: Unpadded(frame, ("head", *s.axes), layers, half=False) for s in reduced}

    @property
    def wants_hidden(self) -> bool:
        """Whether a site asks for hidden states."""
        return any(site.name in HIDDEN for site in self._outputs)

    def see(self, layer: LayerActivations) -> None:
        """Take what the sites ask for out of one layer."""
        without_maps = self._see_without_maps(layer)
        for site in self._reduced:
            if site.identity not in without_maps:
                reduced = site.reduce(layer, self._frame, self._prepared[site.identity])
                self._found[site.identity].add(layer.layer, reduced.detach())
        for site in self._raw:
            source = "gradient" if site.name == "attention_gradient" else site.name
            values: Any = getattr(layer, source)
            self._found[site.identity].add(layer.layer, values.detach())
        if self._whole:
            self._maps.append(layer.attention.detach())

    @cached_property
    def _without_maps(self) -> dict[str, Wanted]:
        """By the sites that need no map, where layers have none, what they want instead."""
        asked = {s.identity: s.wants(self._prepared[s.identity]) for s in self._reduced if s.wants}
        return {identity: wanted for identity, wanted in asked.items() if possible(wanted)}

    def _see_without_maps(self, layer: LayerActivations) -> Collection[str]:
        """Which sites are served: what they want of this layer is taken, and waits for the last layer."""
        if not mapless(layer) or not self._without_maps:
            self._reduce_fused()
            return ()
        if self._fused is None:
            self._fused = FusedLayers(self._frame, list(self._without_maps.values()), self._layers)
            self._first_fused = layer.layer
        self._fused.see(layer)
        return self._without_maps

    def _reduce_fused(self) -> None:
        if self._fused is None:
            return
        together, count = self._fused.finished(self._first_fused), self._fused.count
        self._fused = None
        for site in self._reduced:
            if site.identity in self._without_maps:
                reduced = site.reduce(together, self._frame, self._prepared[site.identity])
                self._found[site.identity].add_layers(together.layer, reduced.unflatten(1, (count, -1)))

    def _reduce_whole(self) -> None:
        if not self._whole:
            return
        everything = LayerActivations(0, torch.cat(self._maps, dim=1))
        for site in self._whole:
            reduced = site.reduce(everything, self._frame, self._prepared[site.identity])
            for number, values in enumerate(reduced.unflatten(1, (len(self._maps), -1)).unbind(1)):
                self._found[site.identity].add(number, values)
        self._maps.clear()

    def finished(self, output: Output) -> dict[str, list[Array]]:
        """One unpadded array an entry for every site."""
        self._reduce_fused()
        self._reduce_whole()
        found = {identity: arrays.arrays() for identity, arrays in self._found.items()}
        for site in self._outputs:
            if site.name in HIDDEN:
                states = Unpadded(self._frame, site.axes[1:], len(output.hidden), half=self._half)
                weights = word_weights(self._frame) if site.name == "hidden.words" else None
                for number, state in enumerate(output.hidden):
                    states.add(number, state if weights is None else weights.to(state.dtype) @ state)
                found[site.identity] = states.arrays()
            else:
                scores = Unpadded(self._frame, site.axes, 1, half=self._half)
                scores.add(0, output.logits[site.name.removeprefix("logits.")])
                found[site.identity] = [array[0] for array in scores.arrays()]
        return found
