"""The pass of an encoder over batches of inputs; on a GPU, the host works ahead of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.lazy import torch
from bertology.recording.gold_targets import GoldTargets, gold_targets
from bertology.recording.overlap import overlap_batches
from bertology.recording.plan import RecordingConfig
from bertology.recording.site_collector import SiteCollector
from bertology.recording.sites import Site, needs_gradient, reads_attention

if TYPE_CHECKING:
    from bertology.encoder.token_batch import RecordedInput


class RecordingPass(NamedTuple):
    """The arguments of a recording; `gold` are the gold targets if the objective needs them."""

    encoder: Encoder
    inputs: Sequence[RecordedInput]
    config: RecordingConfig
    gold: GoldTargets | None


def prepare_pass(
    encoder: Encoder,
    corpus: Corpus,
    inputs: Sequence[RecordedInput],
    config: RecordingConfig,
    sites: Sequence[Site],
) -> RecordingPass:
    """The pass over these inputs, with the gold targets if a site needs them."""
    needs_gold = config.objective == "gold" and any(needs_gradient(site) for site in sites)
    return RecordingPass(encoder, inputs, config, gold_targets(encoder, corpus, inputs) if needs_gold else None)


def record_batches(
    recording_pass: RecordingPass, batches: Iterable[Sequence[int]], sites: Sequence[Site], *, needs_attention: bool
) -> Iterator[tuple[Sequence[int], dict[str, list[Array]]]]:
    """Batches of input indices with the arrays of each site; on a GPU, the host works ahead of it."""
    if overlaps(recording_pass.encoder, sites):
        runner = _BatchRunner(recording_pass, sites, needs_attention=needs_attention)
        yield from overlap_batches(batches, runner.prepare, runner.run, recording_pass.encoder.device)
        return
    for indices in batches:
        yield indices, _record_batch(recording_pass, indices, sites, needs_attention=needs_attention)


def overlaps(encoder: Encoder, sites: Sequence[Site]) -> bool:
    """Whether the host works ahead of the device."""
    return encoder.device.startswith("cuda") and not any(map(needs_gradient, sites))


class _BatchRunner:
    """Runs batches in steps: preparation, forward pass, and fetching of the results."""

    def __init__(self, recording_pass: RecordingPass, sites: Sequence[Site], *, needs_attention: bool) -> None:
        self._recording_pass = recording_pass
        self._sites = sites
        self._needs_attention = needs_attention
        self._is_fused = False

    def prepare(self, indices: Sequence[int]) -> SiteCollector:
        """A collector whose batch and prepared objects are on the device."""
        from bertology.encoder.token_batch import TokenBatch

        encoder, inputs, config, _ = self._recording_pass
        batch = TokenBatch([inputs[index] for index in indices], encoder.device)
        collector = SiteCollector(batch, self._sites, encoder.layers, half_precision=config.half_precision)
        collector.prepare(fused=self._is_fused)
        return collector

    def run(self, indices: Sequence[int], collector: SiteCollector) -> Callable[[], dict[str, list[Array]]]:
        """Submit a batch to the device; returns a function that waits for its arrays."""
        with torch.inference_mode():
            self._forward(collector)
        self._is_fused = collector.is_fused  # as a rule, all batches of a model are
        return collector.arrays

    def _forward(self, collector: SiteCollector) -> None:
        collector.submit(
            self._recording_pass.encoder.forward(
                collector.batch.model_inputs,
                on_layer=collector.on_layer if self._needs_attention else None,
                hidden=collector.needs_hidden_states,
                logits=collector.needs_logits,
            )
        )


def _record_batch(
    recording_pass: RecordingPass, indices: Sequence[int], sites: Sequence[Site], *, needs_attention: bool
) -> dict[str, list[Array]]:
    """The arrays of each site for a batch; sites with gradients take a second pass."""
    from bertology.encoder.token_batch import TokenBatch
    from bertology.recording.objectives import build_objective

    encoder, all_inputs, config, gold = recording_pass
    plain_sites = [site for site in sites if not needs_gradient(site)]
    gradient_sites = [site for site in sites if needs_gradient(site)]
    by_site: dict[str, list[Array]] = {}
    if plain_sites:
        runner = _BatchRunner(recording_pass, plain_sites, needs_attention=needs_attention)
        with torch.inference_mode():
            by_site |= runner.run(indices, runner.prepare(indices))()
    if gradient_sites:
        # A new batch, because tensors created in inference mode cannot be differentiated.
        inputs = [all_inputs[index] for index in indices]
        batch = TokenBatch(inputs, encoder.device)
        fed, objective = build_objective(encoder, config.objective, batch, config.seed, gold)
        fed_batch = TokenBatch(inputs, encoder.device, fed)
        collector = SiteCollector(fed_batch, gradient_sites, encoder.layers, half_precision=config.half_precision)
        by_site |= collector.finish(encoder.forward(fed, on_layer=collector.on_layer, objective=objective))
    return by_site


def reads_any_attention(sites: Sequence[Site]) -> bool:
    """Whether a pass must compute attention explicitly.

    Decided from all sites of a call, even if only some are left to record: explicit attention is computed differently,
    and the last digits of hidden states would depend on which shards were repeated.
    """
    return any(reads_attention(site) and not needs_gradient(site) for site in sites)
