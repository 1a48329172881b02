"""Collects what the sites ask for from one forward pass, cut to each entry's own pieces while a layer is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Output
from bertology.recording.frame import Frame
from bertology.recording.fused import mapless
from bertology.recording.shards import Array
from bertology.recording.sites import HIDDEN, RawSite, ReducedSite, Site, shape_of
from bertology.recording.word_states import word_weights

LAYERS_AT_ONCE = 2
"""How many layers without maps are taken together: fewer and larger steps, for the room of their queries and keys."""


class Unpadded:
    """One site's arrays for a batch: (layer, *axes) an entry, without padding.

    Batches are in order of length, so entries of one shape stand side by side and are copied together, into memory
    that they share. The blocks lie on the encoder's device until the batch is done: one transfer instead of many.
    """

    def __init__(self, frame: Frame, axes: tuple[str, ...], layers: int, *, half: bool) -> None:
        self._frame = frame
        self._axes = axes
        self._layers = layers
        self._kind = torch.float16 if half else torch.float32
        self._blocks: list[tuple[int, Tensor]] = []

    def add(self, layer: int, values: Tensor) -> None:
        """Take layer `layer` out of padded values: (batch, *axes)."""
        self.add_layers(layer, values.unsqueeze(1))

    def add_layers(self, first: int, layers: Tensor) -> None:
        """Take layers from `first` on out of padded values: (batch, layer, *axes)."""
        if not self._blocks:
            if layers.dtype == torch.float16:  # a reduction that asks for no more
                self._kind = torch.float16
            self._blocks = list(self._allocated(tuple(layers.shape[2:]), layers.device))
        count = layers.shape[1]
        for start, block in self._blocks:
            shape = block.shape[2:]
            rows = slice(start, start + block.shape[0])
            block[:, first : first + count] = layers[(rows, slice(None), *(slice(size) for size in shape))]

    def _allocated(self, padded: tuple[int, ...], device: torch.device) -> Sequence[tuple[int, Tensor]]:
        shapes = [shape_of(self._axes, padded, entry.pieces) for entry in self._frame.entries]
        blocks: list[tuple[int, Tensor]] = []
        start = 0
        for shape, run in groupby(shapes):
            count = len(list(run))
            blocks.append((start, torch.empty((count, self._layers, *shape), dtype=self._kind, device=device)))
            start += count
        return blocks

    def arrays(self) -> list[Array]:
        """One array an entry."""
        return [array for _, block in self._blocks for array in block.cpu().numpy()]


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
        self._by_head = [s for s in self._reduced if s.by_head]
        self._waiting: list[LayerActivations] = []  # without maps, to be taken together
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
        waits = bool(self._by_head) and mapless(layer)
        if waits:
            self._wait(layer)
        for site in self._reduced:
            if not (waits and site.by_head):
                reduced = site.reduce(layer, self._frame, self._prepared[site.identity])
                self._found[site.identity].add(layer.layer, reduced.detach())
        for site in self._raw:
            source = "gradient" if site.name == "attention_gradient" else site.name
            values: Any = getattr(layer, source)
            self._found[site.identity].add(layer.layer, values.detach())
        if self._whole:
            self._maps.append(layer.attention.detach())

    def _wait(self, layer: LayerActivations) -> None:
        before = self._waiting[-1] if self._waiting else layer
        if layer.mask is not before.mask or layer.scaling != before.scaling:
            self._reduce_waiting()
        slim = LayerActivations(layer.layer, None, layer.query, layer.key, mask=layer.mask, scaling=layer.scaling)
        self._waiting.append(slim)
        if len(self._waiting) == LAYERS_AT_ONCE:
            self._reduce_waiting()

    def _reduce_waiting(self) -> None:
        if not self._waiting:
            return
        first, count = self._waiting[0], len(self._waiting)
        query, key = (torch.cat([getattr(each, of) for each in self._waiting], 1) for of in ("query", "key"))
        together = LayerActivations(first.layer, None, query, key, mask=first.mask, scaling=first.scaling)
        self._waiting.clear()
        for site in self._by_head:
            reduced = site.reduce(together, self._frame, self._prepared[site.identity])
            self._found[site.identity].add_layers(first.layer, reduced.unflatten(1, (count, -1)))

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
        self._reduce_waiting()
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
