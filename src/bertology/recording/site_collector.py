"""The arrays of every site for one batch, collected layer by layer in the attention hook."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bertology.arrays import Array
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelOutput
from bertology.lazy import torch
from bertology.recording.ragged_arrays import RaggedArrays
from bertology.recording.sites import HIDDEN_SITES, RawSite, ReducedSite, Site
from bertology.statistics.pairs import StatisticNeeds
from bertology.statistics.triton.accumulate import FusedAccumulator, can_fuse, supports_fused
from bertology.statistics.word_states import word_weights

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch


class SiteCollector:
    """The arrays of every site for one batch, filled layer by layer."""

    def __init__(self, batch: TokenBatch, sites: Sequence[Site], layers: int, *, half_precision: bool) -> None:
        self.batch = self._batch = batch
        self._half_precision = half_precision
        self._output_sites = [s for s in sites if isinstance(s, RawSite) and not s.attribute]
        self._raw_sites = [s for s in sites if isinstance(s, RawSite) and s.attribute]
        reduced = [s for s in sites if isinstance(s, ReducedSite)]
        self._reduced_sites = [s for s in reduced if not s.across_layers]
        self._cross_layer_sites = [s for s in reduced if s.across_layers]
        self._n_layers = layers
        self._fused: FusedAccumulator | None = None
        self._attention: list[Tensor] = []  # of all layers, only for cross-layer sites
        self._prepared = {s.storage_key: s.prepare(batch) if s.prepare else None for s in reduced}
        self._arrays = {
            s.storage_key: RaggedArrays(batch, s.axes[1:], layers, half_precision=half_precision)
            for s in self._raw_sites
        }
        self._arrays |= {
            s.storage_key: RaggedArrays(batch, ("head", *s.axes), layers, half_precision=False) for s in reduced
        }

    def prepare(self, *, fused: bool) -> None:
        """Move the batch to the device before the pass, and with `fused` what fused statistics need of it."""
        _ = self._batch.model_inputs
        if fused and self._fused_needs:
            self._fused = FusedAccumulator(self._batch, list(self._fused_needs.values()))
            self._fused.prepare()

    @property
    def is_fused(self) -> bool:
        """Whether a layer had fused statistics."""
        return self._fused is not None and self._fused.has_layers

    @property
    def needs_hidden_states(self) -> bool:
        """Whether a site stores hidden states."""
        return any(site.name in HIDDEN_SITES for site in self._output_sites)

    @property
    def needs_logits(self) -> bool:
        """Whether a site stores logits."""
        return any(site.name not in HIDDEN_SITES for site in self._output_sites)

    def on_layer(self, layer: LayerActivations) -> None:
        """Collect the sites of one layer."""
        fused = self._accumulate_fused(layer)
        for site in self._reduced_sites:
            if site.storage_key not in fused:
                reduced = site.reduce(layer, self._batch, self._prepared[site.storage_key])
                self._arrays[site.storage_key].add(layer.layer, reduced.detach())
        for site in self._raw_sites:
            values: Any = getattr(layer, site.attribute)
            self._arrays[site.storage_key].add(layer.layer, values.detach())
        if self._cross_layer_sites:
            self._attention.append(layer.attention.detach())

    @cached_property
    def _fused_needs(self) -> dict[str, StatisticNeeds]:
        """The needs of the sites that can be computed without storing attention."""
        needs = {s.storage_key: s.needs(self._prepared[s.storage_key]) for s in self._reduced_sites if s.needs}
        return {key: site_needs for key, site_needs in needs.items() if can_fuse(site_needs)}

    def _accumulate_fused(self, layer: LayerActivations) -> Collection[str]:
        """Add a layer to the fused statistics; returns the sites computed from them."""
        if layer.stored_attention is not None or not supports_fused(layer) or not self._fused_needs:
            self._reduce_fused()
            return ()
        if self._fused is None:
            self._fused = FusedAccumulator(self._batch, list(self._fused_needs.values()))
        # Results of most layers are copied to the host while the device computes the last ones.
        end = min(end for end in (self._n_layers - self._n_layers // 6, self._n_layers) if end > layer.layer)
        self._fused.add_layer(layer, n_layers=end - layer.layer)
        if layer.layer + 1 == end:
            self._reduce_fused()
        return self._fused_needs

    def _reduce_fused(self) -> None:
        if self._fused is None or not self._fused.n_pending:
            return
        n_layers, layers = self._fused.n_pending, self._fused.finish()
        for site in self._reduced_sites:
            if site.storage_key in self._fused_needs:
                reduced = site.reduce(layers, self._batch, self._prepared[site.storage_key])
                self._arrays[site.storage_key].add_layers(layers.layer, reduced.unflatten(1, (n_layers, -1)))

    def _reduce_across_layers(self) -> None:
        if not self._cross_layer_sites:
            return
        all_layers = LayerActivations(0, torch.cat(self._attention, dim=1))
        for site in self._cross_layer_sites:
            reduced = site.reduce(all_layers, self._batch, self._prepared[site.storage_key])
            for layer, values in enumerate(reduced.unflatten(1, (len(self._attention), -1)).unbind(1)):
                self._arrays[site.storage_key].add(layer, values)
        self._attention.clear()

    def finish(self, output: ModelOutput) -> dict[str, list[Array]]:
        """One unpadded array per input for every site."""
        self.submit(output)
        return self.arrays()

    def submit(self, output: ModelOutput) -> None:
        """Submit what is left to compute, and begin to copy the results to the host."""
        self._reduce_fused()
        self._reduce_across_layers()
        for site in self._output_sites:
            is_hidden = site.name in HIDDEN_SITES
            self._arrays[site.storage_key] = (self._hidden_states if is_hidden else self._logits)(site, output)
        for arrays in self._arrays.values():
            arrays.transfer()

    def arrays(self) -> dict[str, list[Array]]:
        """One unpadded array per input for every site, once the device has finished."""
        by_site = {key: arrays.arrays() for key, arrays in self._arrays.items()}
        for site in self._output_sites:
            if site.name not in HIDDEN_SITES:
                by_site[site.storage_key] = [array[0] for array in by_site[site.storage_key]]
        return by_site

    def _hidden_states(self, site: RawSite, output: ModelOutput) -> RaggedArrays:
        n_states = len(output.hidden_states)
        arrays = RaggedArrays(self._batch, site.axes[1:], n_states, half_precision=self._half_precision)
        weights = word_weights(self._batch) if site.name == "hidden.words" else None
        for layer, states in enumerate(output.hidden_states):
            arrays.add(layer, states if weights is None else weights.to(states.dtype) @ states)
        return arrays

    def _logits(self, site: RawSite, output: ModelOutput) -> RaggedArrays:
        arrays = RaggedArrays(self._batch, site.axes, 1, half_precision=self._half_precision)
        arrays.add(0, output.logits[site.name.removeprefix("logits.")])
        return arrays
