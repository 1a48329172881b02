"""Collects what the sites ask for from one forward pass, cut to each entry's own pieces while a layer is at hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Output
from bertology.recording.frame import Frame
from bertology.recording.fused import FusedLayers, mapless, possible
from bertology.recording.shards import Array
from bertology.recording.sites import HIDDEN, RawSite, ReducedSite, Site
from bertology.recording.unpadded import Unpadded
from bertology.recording.wanted import Wanted
from bertology.recording.word_states import word_weights


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
        self._fused: FusedLayers | None = None
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
            self._fused = FusedLayers(self._frame, list(self._without_maps.values()))
        # What most layers come to goes to the host while the device is at the last ones.
        end = min(end for end in (self._layers - self._layers // 6, self._layers) if end > layer.layer)
        self._fused.see(layer, room=end - layer.layer)
        if layer.layer + 1 == end:
            self._reduce_fused()
        return self._without_maps

    def _reduce_fused(self) -> None:
        if self._fused is None or not self._fused.count:
            return
        count, together = self._fused.count, self._fused.finished()
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
        for arrays in self._found.values():
            arrays.fetch()
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
