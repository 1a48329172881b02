"""`record`: one pass of an encoder over a corpus that feeds all sites, raw and reduced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.corpus.stream import CorpusStream
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import Encoder, ModelOutput
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine, refuse_without_store
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.number_ranges import HOURS
from bertology.progress import describe_step
from bertology.recording.gold_targets import GoldTargets, gold_targets
from bertology.recording.incremental_plan import IncrementalPlan
from bertology.recording.manifest import load_plan, save_description
from bertology.recording.overlap import overlap_batches
from bertology.recording.plan import RecordingConfig, RecordingPlan, make_plan
from bertology.recording.ragged_arrays import RaggedArrays
from bertology.recording.recording import EncoderSummary, Recording
from bertology.recording.recording_work import estimate_recording
from bertology.recording.shards import ShardReader, write_shard
from bertology.recording.sites import (
    HIDDEN_SITES,
    RawSite,
    ReducedSite,
    Site,
    needs_gradient,
    reads_attention,
    resolve_sites,
)
from bertology.recording.store import RecordingFolder, recording_hash
from bertology.statistics.pairs import StatisticNeeds
from bertology.statistics.triton.accumulate import FusedAccumulator, can_fuse, supports_fused
from bertology.statistics.word_states import word_weights
from bertology.store_paths import StorePath, store_path
from bertology.work_estimate import MAX_HOURS, MESSAGE_SECONDS, WorkEstimate, check_work

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import RecordedInput, TokenBatch

ProgressCallback = Callable[[int, int], None]
"""Called with the number of tokens done and the total."""
MessageCallback = Callable[[str], None]


def record(
    encoder: Any,
    corpus: Any,
    sites: Iterable[str | Site],
    *,
    config: RecordingConfig = RecordingConfig(),
    store: str | StorePath | None = None,
    folder: str | StorePath | None = None,
    max_hours: Annotated[float | None, HOURS] = MAX_HOURS,
    engine: Engine | str | None = None,
    progress: ProgressCallback | None = None,
    notify: MessageCallback | None = None,
) -> Recording:
    """Record activations of `encoder` on `corpus` at `sites`; both are whatever `bertology.run` takes.

    With a `store` (a root folder), shards are stored under a content hash, finished shards are never recomputed, and
    sites recorded earlier are shared; `folder` names the recording's own folder instead. Both may be addresses, such as
    s3://bucket/folder. Without either, arrays stay in memory. A corpus of `bertology.stream_corpus` is recorded part by
    part, and the recording reads its parts when they are needed. With an `engine` (`local:4`, `ray`, `ray:ADDRESS`) its
    workers record the shards, the same bytes as here. A recording that is estimated to take longer than `max_hours`, or
    more space than there is, is refused before it starts; None sets no bound, and a stream, whose length is not known,
    has none.
    """
    if isinstance(corpus, CorpusStream):
        from bertology.recording.stream_recorder import record_stream

        return record_stream(
            as_encoder(encoder),
            corpus,
            sites,
            config,
            store=store,
            folder=folder,
            engine=engine,
            progress=progress,
            notify=notify,
        )
    encoder, corpus = as_encoder(encoder), as_corpus(corpus)
    store, folder = (None if path is None else store_path(path) for path in (store, folder))
    resolved = resolve_sites(sites, encoder.task_heads)
    check_sites_available(encoder, resolved, config)
    if max_hours is not None:
        target = folder or store
        work = estimate_missing(encoder, corpus, resolved, config=config, store=store, folder=folder)
        check_work(f"Recording {encoder.name} on {corpus.name}", work, max_hours, folder=target, notify=notify)
    arrays: dict[str, Any]
    plan: RecordingPlan | IncrementalPlan
    if store is None and folder is None:
        refuse_without_store(None if engine == "local" else engine, store)
        make = IncrementalPlan if _overlaps(encoder, resolved) else make_plan
        plan = make(encoder, corpus, config)
        recording_pass = _prepare_pass(encoder, corpus, plan.inputs, config, resolved)
        arrays = _record_in_memory(recording_pass, plan, resolved, progress)
    else:
        writer = prepare_shards(encoder, corpus, resolved, config, store=store, folder=folder)
        plan = writer.plan
        with open_engine(engine) as opened:
            arrays = writer.record(progress, notify, opened)
    summary = encoder_summary(encoder)
    return Recording(summary, corpus, plan.inputs, arrays, config.key_fields(), plan.counts, store=store)


def estimate_missing(
    encoder: Encoder,
    corpus: Corpus,
    sites: Sequence[Site],
    *,
    config: RecordingConfig,
    store: StorePath | None = None,
    folder: StorePath | None = None,
) -> WorkEstimate:
    """The work of a recording, without the shards that are recorded already."""
    work = estimate_recording(encoder, corpus, sites, config)
    if work.seconds < MESSAGE_SECONDS and not work.n_bytes:
        return work
    return work.scaled(missing_proportion(encoder, corpus, sites, config=config, store=store, folder=folder))


def missing_proportion(
    encoder: Encoder,
    corpus: Corpus,
    sites: Sequence[Site],
    *,
    config: RecordingConfig,
    store: StorePath | None = None,
    folder: StorePath | None = None,
) -> float:
    """The proportion of the tokens that a recording in a store, or in a folder of its own, lacks."""
    is_new = store is None or not store.is_dir() if folder is None else not folder.is_dir()
    if is_new:  # the key of a large corpus would take long
        return 1.0
    key = recording_key(encoder, corpus, config)
    stored = RecordingFolder(folder or (store or Path()) / recording_hash(key))
    plan = load_plan(stored, key, corpus)
    if plan is None:
        return 1.0
    files = [stored.shards(site.storage_key) for site in sites]
    lengths = [sum(len(plan.inputs[index].tokens) for index in shard) for shard in plan.order]
    missing = [n for shard, n in enumerate(lengths) if any(shard not in of_site for of_site in files)]
    return sum(missing) / max(1, sum(lengths))


def prepare_shards(
    encoder: Encoder,
    corpus: Corpus,
    sites: Sequence[Site],
    config: RecordingConfig,
    *,
    store: StorePath | None,
    folder: StorePath | None,
) -> ShardWriter:
    """The writer of the shards of a recording, whose plan is in its folder: read from there, or made and saved."""
    summary = encoder_summary(encoder)
    key = recording_key(encoder, corpus, config)
    recording_folder = RecordingFolder(folder or (store or Path()) / recording_hash(key))
    plan = load_plan(recording_folder, key, corpus)
    if plan is None:
        plan = make_plan(encoder, corpus, config)
        plan = save_description(recording_folder, key, summary, corpus, plan, config)
    recording_pass = _prepare_pass(encoder, corpus, plan.inputs, config, sites)
    return ShardWriter(recording_pass, plan, sites, recording_folder)


def find_recording(
    encoder: Encoder,
    corpus: Corpus,
    sites: Iterable[str | Site],
    *,
    config: RecordingConfig = RecordingConfig(),
    store: StorePath,
) -> Recording | None:
    """The recording of an encoder and a corpus in a store, if all shards of these sites are there; nothing is run."""
    resolved = resolve_sites(sites, encoder.task_heads)
    key = recording_key(encoder, corpus, config)
    folder = RecordingFolder(store / recording_hash(key))
    plan = load_plan(folder, key, corpus)
    if plan is None or any(len(folder.shards(site.storage_key)) < len(plan.shards) for site in resolved):
        return None
    return record(encoder, corpus, resolved, config=config, store=store, max_hours=None)


def recording_key(encoder: Encoder, corpus: Corpus, config: RecordingConfig) -> dict[str, Any]:
    """What a recording is identified by: encoder, corpus and configuration."""
    return {"encoder": encoder.fingerprint, "corpus": corpus.fingerprint, "config": config.key_fields()}


def encoder_summary(encoder: Encoder) -> EncoderSummary:
    """The description of an encoder that is stored with its recordings."""
    return EncoderSummary(
        encoder.name,
        encoder.fingerprint,
        encoder.layers,
        encoder.heads,
        encoder.width,
        encoder.causal,
        tuple(sorted(encoder.task_heads)),
        encoder.attention_windows,
    )


def check_sites_available(encoder: Encoder, sites: Sequence[Site], config: RecordingConfig) -> None:
    """Refuse sites the encoder does not have: logits of missing task heads, attention of static vectors, gradients."""
    if any(needs_gradient(site) for site in sites):
        from bertology.recording.objectives import objective_task_head

        objective_task_head(encoder, config.objective)
    for site in sites:
        task_head = site.name.removeprefix("logits.")
        if site.name.startswith("logits.") and task_head not in encoder.task_heads:
            available = ", ".join(sorted(encoder.task_heads)) or "none"
            raise Refusal(
                f"{encoder.name} has no task head {task_head} (it has: {available})",
                "a model with that task head",
                "Choose a model that was saved with it, or leave the site out",
            )
        if encoder.layers == 0 and not site.name.startswith("logits.") and site.name not in HIDDEN_SITES:
            raise Refusal(
                f"{encoder.name} has static vectors and no {site.name}",
                "an encoder with attention",
                "Name a transformer with --model, or record only `hidden`",
            )


class _RecordingPass(NamedTuple):
    """The arguments of a recording; `gold` are the gold targets if the objective needs them."""

    encoder: Encoder
    inputs: Sequence[RecordedInput]
    config: RecordingConfig
    gold: GoldTargets | None


def _prepare_pass(
    encoder: Encoder,
    corpus: Corpus,
    inputs: Sequence[RecordedInput],
    config: RecordingConfig,
    sites: Sequence[Site],
) -> _RecordingPass:
    needs_gold = config.objective == "gold" and any(needs_gradient(site) for site in sites)
    return _RecordingPass(encoder, inputs, config, gold_targets(encoder, corpus, inputs) if needs_gold else None)


def _record_in_memory(
    recording_pass: _RecordingPass,
    plan: RecordingPlan | IncrementalPlan,
    sites: Sequence[Site],
    progress: ProgressCallback | None,
) -> dict[str, list[Array]]:
    recorded: dict[str, dict[int, Array]] = {site.storage_key: {} for site in sites}
    token_progress = TokenProgress(plan, plan.n_tokens, progress)
    needs_attention = _needs_attention(sites)
    for indices, by_site in _record_batches(recording_pass, plan.batches(), sites, needs_attention=needs_attention):
        for key, arrays in by_site.items():
            recorded[key].update(zip(indices, arrays, strict=True))
        token_progress.total = plan.n_tokens
        token_progress.add(indices)
    return {key: [arrays[index] for index in range(len(plan.inputs))] for key, arrays in recorded.items()}


class ShardWriter:
    """Records missing shards into a folder, and repeats corrupt ones; workers of an engine have a copy of it."""

    def __init__(
        self, recording_pass: _RecordingPass, plan: RecordingPlan, sites: Sequence[Site], folder: RecordingFolder
    ) -> None:
        self._recording_pass = recording_pass
        self.plan = plan
        self.sites = sites
        self.folder = folder

    @property
    def name(self) -> str:
        """The model that is recorded."""
        return self._recording_pass.encoder.name

    def files(self) -> dict[str, dict[int, StorePath]]:
        """The finished shards of each site by index; what other processes left half-written is removed first."""
        for site in self.sites:
            self.folder.remove_leftovers(site.storage_key)
        return {site.storage_key: self.folder.shards(site.storage_key) for site in self.sites}

    def missing(self, files: Mapping[str, Mapping[int, StorePath]]) -> dict[int, list[Site]]:
        """The sites that are missing in each unfinished shard."""
        by_shard = {
            shard: [site for site in self.sites if shard not in files[site.storage_key]]
            for shard in range(len(self.plan.shards))
        }
        return {shard: sites for shard, sites in by_shard.items() if sites}

    def record(
        self, progress: ProgressCallback | None, notify: MessageCallback | None, engine: Engine | None = None
    ) -> dict[str, ShardReader]:
        """Record all missing shards, here or by the workers of an engine; returns a reader for each site."""
        files = self.record_missing(progress, notify, engine)
        return {
            site.storage_key: ShardReader(files[site.storage_key], self.plan.order, self._repair_function(site))
            for site in self.sites
        }

    def record_missing(
        self,
        progress: ProgressCallback | None,
        notify: MessageCallback | None,
        engine: Engine | None = None,
        is_chosen: Callable[[int], bool] = lambda shard: True,
    ) -> dict[str, dict[int, StorePath]]:
        """Record the missing shards, or those of them that are chosen; returns the finished shards of each site."""
        plan, folder, files = self.plan, self.folder, self.files()
        all_missing, n_shards = self.missing(files), len(plan.shards)
        missing = {shard: sites for shard, sites in all_missing.items() if is_chosen(shard)}
        if notify and not all_missing:
            notify(f"Using the stored recording of {len(plan.inputs)} inputs ({folder.path}).")
        elif notify and len(all_missing) < n_shards:
            n_finished = n_shards - len(all_missing)
            notify(f"Resuming the recording: {n_finished} of {n_shards} shards are finished ({folder.path}).")
        token_progress = TokenProgress(plan, plan.count_tokens(missing), progress)
        if engine is None:
            for shard, sites in missing.items():
                for key, file in self.record_shard(shard, sites, token_progress):
                    files[key][shard] = file
        elif missing:
            from bertology.recording.engine_shards import record_in_workers

            record_in_workers(self, missing, engine, token_progress, notify)
            files = self.files()
        return files

    def record_shard(
        self, shard_index: int, sites: Sequence[Site], token_progress: TokenProgress
    ) -> Iterator[tuple[str, StorePath]]:
        """Record some sites of one shard; yields the key and the file of each site."""
        recorded: dict[str, list[Array]] = {site.storage_key: [] for site in sites}
        needs_attention = _needs_attention(self.sites)
        batches = self.plan.shards[shard_index]
        for indices, by_site in _record_batches(self._recording_pass, batches, sites, needs_attention=needs_attention):
            for key, arrays in by_site.items():
                recorded[key].extend(arrays)
            token_progress.add(indices)
        order = self.plan.order[shard_index]
        for key in list(recorded):
            yield key, write_shard(self.folder.path / key, shard_index, order, recorded.pop(key))

    def _repair_function(self, site: Site) -> Callable[[int, StorePath], StorePath]:
        def repair(shard_index: int, corrupt_file: StorePath) -> StorePath:
            with suppress(OSError):
                corrupt_file.unlink(missing_ok=True)
            token_progress = TokenProgress(self.plan, 0, None)
            return dict(self.record_shard(shard_index, [site], token_progress))[site.storage_key]

        return repair


def _record_batches(
    recording_pass: _RecordingPass, batches: Iterable[Sequence[int]], sites: Sequence[Site], *, needs_attention: bool
) -> Iterator[tuple[Sequence[int], dict[str, list[Array]]]]:
    """Batches of input indices with the arrays of each site; on a GPU, the host works ahead of it."""
    if _overlaps(recording_pass.encoder, sites):
        runner = _BatchRunner(recording_pass, sites, needs_attention=needs_attention)
        yield from overlap_batches(batches, runner.prepare, runner.run, recording_pass.encoder.device)
        return
    for indices in batches:
        yield indices, _record_batch(recording_pass, indices, sites, needs_attention=needs_attention)


def _overlaps(encoder: Encoder, sites: Sequence[Site]) -> bool:
    """Whether the host works ahead of the device."""
    return encoder.device.startswith("cuda") and not any(map(needs_gradient, sites))


class _BatchRunner:
    """Runs batches in steps: preparation, forward pass, and fetching of the results."""

    def __init__(self, recording_pass: _RecordingPass, sites: Sequence[Site], *, needs_attention: bool) -> None:
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
    recording_pass: _RecordingPass, indices: Sequence[int], sites: Sequence[Site], *, needs_attention: bool
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


def _needs_attention(sites: Sequence[Site]) -> bool:
    """Whether a pass must compute attention explicitly.

    Decided from all sites of a call, even if only some are left to record: explicit attention is computed differently,
    and the last digits of hidden states would depend on which shards were repeated.
    """
    return any(reads_attention(site) and not needs_gradient(site) for site in sites)


class TokenProgress:
    """Reports the number of recorded tokens to a progress callback."""

    def __init__(self, plan: RecordingPlan | IncrementalPlan, n_tokens: int, progress: ProgressCallback | None) -> None:
        self._plan = plan
        self._progress = progress
        self.done = 0
        self.total = n_tokens
        if progress:
            progress(0, n_tokens)

    def add(self, indices: Sequence[int]) -> None:
        """Count the tokens of these inputs as recorded."""
        self.done += sum(len(self._plan.inputs[i].tokens) for i in indices)
        if self._progress:
            self._progress(self.done, self.total)

    def describe(self, detail: str) -> None:
        """Show a detail with the progress, such as the number of finished shards."""
        if self._progress:
            describe_step(self._progress, detail)


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
