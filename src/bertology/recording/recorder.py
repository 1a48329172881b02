"""`record`: one pass of an encoder over a corpus that feeds all sites, raw and reduced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.corpus.stream import CorpusStream
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine, refuse_without_store
from bertology.errors import Refusal
from bertology.number_ranges import HOURS
from bertology.progress import MessageCallback, ProgressCallback
from bertology.recording.incremental_plan import IncrementalPlan
from bertology.recording.manifest import load_plan, save_description
from bertology.recording.plan import RecordingConfig, RecordingPlan, make_plan
from bertology.recording.recording import EncoderSummary, Recording
from bertology.recording.recording_pass import (
    RecordingPass,
    overlaps,
    prepare_pass,
    reads_any_attention,
    record_batches,
)
from bertology.recording.recording_work import estimate_recording
from bertology.recording.shard_writer import ShardWriter, TokenProgress
from bertology.recording.sites import HIDDEN_SITES, Site, needs_gradient, resolve_sites
from bertology.recording.store import RecordingFolder, recording_hash
from bertology.store_paths import StorePath, store_path
from bertology.work_estimate import MAX_HOURS, MESSAGE_SECONDS, WorkEstimate, check_work


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
        make = IncrementalPlan if overlaps(encoder, resolved) else make_plan
        plan = make(encoder, corpus, config)
        recording_pass = prepare_pass(encoder, corpus, plan.inputs, config, resolved)
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
    recording_pass = prepare_pass(encoder, corpus, plan.inputs, config, sites)
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


def _record_in_memory(
    recording_pass: RecordingPass,
    plan: RecordingPlan | IncrementalPlan,
    sites: Sequence[Site],
    progress: ProgressCallback | None,
) -> dict[str, list[Array]]:
    recorded: dict[str, dict[int, Array]] = {site.storage_key: {} for site in sites}
    token_progress = TokenProgress(plan, plan.n_tokens, progress)
    needs_attention = reads_any_attention(sites)
    for indices, by_site in record_batches(recording_pass, plan.batches(), sites, needs_attention=needs_attention):
        for key, arrays in by_site.items():
            recorded[key].update(zip(indices, arrays, strict=True))
        token_progress.total = plan.n_tokens
        token_progress.add(indices)
    return {key: [arrays[index] for index in range(len(plan.inputs))] for key, arrays in recorded.items()}
