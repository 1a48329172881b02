"""The work of a run, estimated before it starts: its forward passes, measured, and what analyses declare."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from bertology.analyses.declaration import Analysis
from bertology.analyses.progress_estimate import SECONDS_PER_WORD
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.encoder.threads import thread_limit
from bertology.engines.engine import Engine
from bertology.recording.recorder import missing_proportion
from bertology.recording.recording_work import count_words_per_input, estimate_recording
from bertology.recording.sites import resolve_sites
from bertology.work_estimate import MESSAGE_SECONDS, WorkEstimate

if TYPE_CHECKING:
    from bertology.analyses.run import RunInputs

ROLES = ("recording", "randomised", "against")
MIN_FACTOR = 0.25
"""Analyses take at least this part of the seconds that they declare: `mini` took a fifth of them on a core of 2024."""


def estimate_run(requests: Sequence[tuple[Analysis, Mapping[str, Any]]], inputs: RunInputs) -> WorkEstimate:
    """Seconds on this machine, and bytes that are kept, of analyses with all their options; as if nothing were stored.

    Seconds that analyses declare are those of a small encoder on one core; they grow with the measured pass.
    """
    corpus = inputs.corpus
    if corpus is None or not requests:
        return WorkEstimate()
    words, scale = count_words_per_input(corpus)
    n_words = int(words.sum() * scale)
    measured: dict[tuple[int, tuple[str, ...]], WorkEstimate] = {}
    passes = {role: _pass(role, requests, inputs, measured) for role in ROLES}
    main = passes["recording"].seconds or passes["against"].seconds
    factor = max(MIN_FACTOR, main / (SECONDS_PER_WORD * max(1, n_words)))
    declared = sum(analysis.cost.estimate(n_words) for analysis, _ in requests)
    return sum(passes.values(), WorkEstimate(factor * declared))


def estimate_missing_run(requests: Sequence[tuple[Analysis, Mapping[str, Any]]], inputs: RunInputs) -> WorkEstimate:
    """The work of a run without results and shards that are stored already; for work that is worth a message."""
    from bertology.analyses.run import has_stored_result

    work = estimate_run(requests, inputs)
    is_small = work.seconds < MESSAGE_SECONDS and not work.n_bytes
    if is_small or inputs.store is None or not inputs.store.is_dir():
        return work
    missing = [request for request in requests if not has_stored_result(*request, inputs)]
    return work if len(missing) == len(requests) else estimate_run(missing, inputs)


@contextmanager
def measured_as_worker(engine: Engine | None) -> Generator[None]:
    """Measure the speed of a worker: processes that share the cores of this machine have a part of the threads each."""
    n_threads = None if engine is None else engine.threads_per_worker
    with nullcontext() if n_threads is None else thread_limit(n_threads):
        yield


def _pass(
    role: str,
    requests: Sequence[tuple[Analysis, Mapping[str, Any]]],
    inputs: RunInputs,
    measured: dict[tuple[int, tuple[str, ...]], WorkEstimate],
) -> WorkEstimate:
    """The pass that records what all analyses need of one model; passes of one kind are measured once."""
    encoder = _encoder(role, inputs)
    concerned = [(analysis, options) for analysis, options in requests if role in analysis.inputs]
    sites = resolve_sites(site for analysis, options in concerned for site in analysis.sites(options))
    if encoder is None or inputs.corpus is None or inputs.recorded(role) is not None or not sites:
        return WorkEstimate()
    # The untrained model is as large, and is built only to look up what is stored of it.
    key = id(encoder), tuple(sorted(site.storage_key for site in sites))
    if key not in measured:
        measured[key] = estimate_recording(encoder, inputs.corpus, sites, inputs.config)
    work = measured[key]
    is_small = work.seconds < MESSAGE_SECONDS and not work.n_bytes
    if is_small or inputs.store is None:
        return work
    stored = encoder.randomised(seed=0) if role == "randomised" and isinstance(encoder, Randomisable) else encoder
    return work.scaled(missing_proportion(stored, inputs.corpus, sites, config=inputs.config, store=inputs.store))


def _encoder(role: str, inputs: RunInputs) -> Encoder | None:
    if role == "randomised":
        return inputs.encoder if inputs.random_baseline and isinstance(inputs.encoder, Randomisable) else None
    return inputs.against if role == "against" else inputs.encoder
