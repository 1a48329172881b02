"""`record`: one pass of an encoder over a corpus that feeds all sites, raw and reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.gold_targets import GoldTargets, gold_targets
from bertology.recording.manifest import load_plan, save_description
from bertology.recording.plan import RecordingConfig, RecordingPlan, make_plan
from bertology.recording.recording import EncoderSummary, Recording
from bertology.recording.shards import ShardReader, write_shard
from bertology.recording.sites import HIDDEN_SITES, Site, needs_gradient, reads_attention, resolve_sites
from bertology.recording.store import RecordingFolder, recording_hash

ProgressCallback = Callable[[int, int], None]
"""Called with the number of tokens done and the total."""
MessageCallback = Callable[[str], None]


def record(
    encoder: Encoder,
    corpus: Corpus,
    sites: Iterable[str | Site],
    *,
    config: RecordingConfig = RecordingConfig(),
    store: Path | None = None,
    folder: Path | None = None,
    progress: ProgressCallback | None = None,
    notify: MessageCallback | None = None,
) -> Recording:
    """Record activations of `encoder` on `corpus` at `sites`.

    With a `store` (a root folder), shards are stored under a content hash, finished shards are never recomputed, and
    sites recorded earlier are shared; `folder` names the recording's own folder instead. Without either, arrays stay in
    memory.
    """
    resolved = resolve_sites(sites, encoder.task_heads)
    check_sites_available(encoder, resolved, config)
    summary = encoder_summary(encoder)
    if store is None and folder is None:
        plan = make_plan(encoder, corpus, config)
        recording_pass = _prepare_pass(encoder, corpus, plan, config, resolved)
        arrays: dict[str, Any] = _record_in_memory(recording_pass, resolved, progress)
    else:
        key = {"encoder": summary.fingerprint, "corpus": corpus.fingerprint, "config": config.key_fields()}
        recording_folder = RecordingFolder(folder or Path(store or ".") / recording_hash(key))
        plan = load_plan(recording_folder, key, corpus)
        if plan is None:
            plan = make_plan(encoder, corpus, config)
            plan = save_description(recording_folder, key, summary, corpus, plan, config)
        recording_pass = _prepare_pass(encoder, corpus, plan, config, resolved)
        arrays = _ShardWriter(recording_pass, resolved, recording_folder).record(progress, notify)
    return Recording(summary, corpus, plan.inputs, arrays, config.key_fields(), plan.counts)


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
    plan: RecordingPlan
    config: RecordingConfig
    gold: GoldTargets | None


def _prepare_pass(
    encoder: Encoder, corpus: Corpus, plan: RecordingPlan, config: RecordingConfig, sites: Sequence[Site]
) -> _RecordingPass:
    needs_gold = config.objective == "gold" and any(needs_gradient(site) for site in sites)
    return _RecordingPass(encoder, plan, config, gold_targets(encoder, corpus, plan.inputs) if needs_gold else None)


def _record_in_memory(
    recording_pass: _RecordingPass, sites: Sequence[Site], progress: ProgressCallback | None
) -> dict[str, list[Array]]:
    plan = recording_pass.plan
    recorded: dict[str, list[Any]] = {site.storage_key: [None] * len(plan.inputs) for site in sites}
    token_progress = _TokenProgress(plan, range(len(plan.shards)), progress)
    for shard in plan.shards:
        for indices in shard:
            by_site = _record_batch(recording_pass, indices, sites, needs_attention=_needs_attention(sites))
            for key, arrays in by_site.items():
                for index, array in zip(indices, arrays, strict=True):
                    recorded[key][index] = array
            token_progress.add(indices)
    return recorded


class _ShardWriter:
    """Records missing shards into a folder, and repeats corrupt ones."""

    def __init__(self, recording_pass: _RecordingPass, sites: Sequence[Site], folder: RecordingFolder) -> None:
        self._recording_pass = recording_pass
        self._plan = recording_pass.plan
        self._sites = sites
        self._folder = folder

    def record(self, progress: ProgressCallback | None, notify: MessageCallback | None) -> dict[str, ShardReader]:
        """Record all missing shards; returns a reader for each site."""
        plan, folder = self._plan, self._folder
        for site in self._sites:
            folder.remove_leftovers(site.storage_key)
        files = {site.storage_key: folder.shards(site.storage_key) for site in self._sites}
        shards = range(len(plan.shards))
        missing = {shard: [s for s in self._sites if shard not in files[s.storage_key]] for shard in shards}
        unfinished = [shard for shard in shards if missing[shard]]
        if notify and not unfinished:
            notify(f"Using the stored recording of {len(plan.inputs)} inputs ({folder.path}).")
        elif notify and len(unfinished) < len(shards):
            n_finished = len(shards) - len(unfinished)
            notify(f"Resuming the recording: {n_finished} of {len(shards)} shards are finished ({folder.path}).")
        token_progress = _TokenProgress(plan, unfinished, progress)
        for shard in unfinished:
            for key, file in self._record_shard(shard, missing[shard], token_progress):
                files[key][shard] = file
        return {
            site.storage_key: ShardReader(files[site.storage_key], plan.order, self._repair_function(site))
            for site in self._sites
        }

    def _record_shard(
        self, shard_index: int, sites: Sequence[Site], token_progress: _TokenProgress
    ) -> Iterator[tuple[str, Path]]:
        recorded: dict[str, list[Array]] = {site.storage_key: [] for site in sites}
        needs_attention = _needs_attention(self._sites)
        for indices in self._plan.shards[shard_index]:
            by_site = _record_batch(self._recording_pass, indices, sites, needs_attention=needs_attention)
            for key, arrays in by_site.items():
                recorded[key].extend(arrays)
            token_progress.add(indices)
        order = self._plan.order[shard_index]
        for key in list(recorded):
            yield key, write_shard(self._folder.path / key, shard_index, order, recorded.pop(key))

    def _repair_function(self, site: Site) -> Callable[[int, Path], Path]:
        def repair(shard_index: int, corrupt_file: Path) -> Path:
            with suppress(OSError):
                corrupt_file.unlink(missing_ok=True)
            token_progress = _TokenProgress(self._plan, [shard_index], None)
            return dict(self._record_shard(shard_index, [site], token_progress))[site.storage_key]

        return repair


def _record_batch(
    recording_pass: _RecordingPass, indices: Sequence[int], sites: Sequence[Site], *, needs_attention: bool
) -> dict[str, list[Array]]:
    """The arrays of each site for a batch; sites with gradients take a second pass."""
    from bertology.encoder.token_batch import TokenBatch
    from bertology.recording.objectives import build_objective
    from bertology.recording.site_collector import SiteCollector

    encoder, plan, config, gold = recording_pass
    inputs = [plan.inputs[index] for index in indices]
    plain_sites = [site for site in sites if not needs_gradient(site)]
    gradient_sites = [site for site in sites if needs_gradient(site)]
    by_site: dict[str, list[Array]] = {}
    if plain_sites:
        with torch.inference_mode():
            batch = TokenBatch(inputs, encoder.device)
            collector = SiteCollector(batch, plain_sites, encoder.layers, half_precision=config.half_precision)
            output = encoder.forward(
                batch.model_inputs,
                on_layer=collector.on_layer if needs_attention else None,
                hidden=collector.needs_hidden_states,
            )
            by_site |= collector.finish(output)
    if gradient_sites:
        # A new batch, because tensors created in inference mode cannot be differentiated.
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


class _TokenProgress:
    """Reports the number of recorded tokens to a progress callback."""

    def __init__(self, plan: RecordingPlan, shards: Iterable[int], progress: ProgressCallback | None) -> None:
        self.plan = plan
        self.progress = progress
        self.done = 0
        self.total = sum(len(plan.inputs[i].tokens) for s in shards for batch in plan.shards[s] for i in batch)
        if progress:
            progress(0, self.total)

    def add(self, indices: Sequence[int]) -> None:
        self.done += sum(len(self.plan.inputs[i].tokens) for i in indices)
        if self.progress:
            self.progress(self.done, self.total)
