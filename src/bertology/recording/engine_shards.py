"""Record the shards of a recording in the workers of an engine; each worker writes into the same folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from bertology.engines.engine import Engine, Outcome, WorkerTask, raise_failures
from bertology.errors import count_noun
from bertology.progress import MessageCallback
from bertology.recording.shard_writer import ShardWriter, TokenProgress
from bertology.recording.sites import Site

MAX_TEXT = 60


def record_in_workers(
    writer: ShardWriter,
    missing: Mapping[int, Sequence[Site]],
    engine: Engine,
    token_progress: TokenProgress,
    notify: MessageCallback | None,
) -> None:
    """Record the missing sites of each shard in some worker; shards that fail are named when all others are done."""
    n_workers, start = min(engine.n_workers, len(missing)), monotonic()
    work = (
        f"{count_noun(len(missing), 'shards')} of {writer.name} in {count_noun(n_workers, 'workers')} ({engine.name})"
    )
    if notify:
        notify(f"Recording {work}.")
    tasks = [
        WorkerTask(_label(writer, shard), (shard, [site.storage_key for site in sites]))
        for shard, sites in missing.items()
    ]
    failures: list[Outcome] = []
    token_progress.describe(_describe(0, len(tasks), 0.0, n_workers))
    for n_done, outcome in enumerate(engine.run(record_task, writer, tasks, folder=writer.folder.path), 1):
        if outcome.error is not None:
            failures.append(outcome)
            continue
        indices = [index for batch in writer.plan.shards[outcome.task.arguments[0]] for index in batch]
        n_tokens = token_progress.done + sum(len(writer.plan.inputs[index].tokens) for index in indices)
        n_workers_now = min(engine.n_workers, max(1, len(tasks) - n_done))  # nodes may have joined or been lost
        rate = n_tokens / max(monotonic() - start, 1e-9)
        token_progress.describe(_describe(n_done - len(failures), len(tasks), rate, n_workers_now))
        token_progress.add(indices)
    seconds = monotonic() - start
    if notify:
        rate = f"{token_progress.done:,} tokens in {seconds:.1f} s, {token_progress.done / seconds:,.0f} tokens/s"
        notify(f"Recorded {len(tasks) - len(failures)} of {work}: {rate}.")
    raise_failures(failures)


def record_task(writer: ShardWriter, shard_index: int, keys: Sequence[str]) -> list[str]:
    """Record some sites of one shard, in a worker; returns the names of the files."""
    sites = [site for site in writer.sites if site.storage_key in keys]
    progress = TokenProgress(writer.plan, 0, None)
    return [file.name for _, file in writer.record_shard(shard_index, sites, progress)]


def _label(writer: ShardWriter, shard: int) -> str:
    """The shard and its first input, for messages."""
    text = " ".join(writer.plan.inputs[writer.plan.order[shard][0]].text.words)
    shown = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ..."
    return f"shard {shard + 1} of {len(writer.plan.shards)} of {writer.name} (first input: {shown!r})"


def _describe(n_done: int, n_shards: int, rate: float, n_workers: int) -> str:
    tokens = f", {rate:,.0f} tokens/s" if rate else ""
    return f"{n_done}/{n_shards} shards{tokens}, {count_noun(n_workers, 'workers')}"
