"""The work of an atlas, estimated before it starts: measured on one model, and by the size of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertology.analyses import registry
from bertology.analyses.run import RunInputs
from bertology.atlas.judging import JudgingTask, model_files, stored_model
from bertology.claims.run import MAX_UNKNOWN
from bertology.claims.run_plan import estimate_claims
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import as_encoder, load
from bertology.errors import Refusal
from bertology.recording.plan import WORK_PER_SECOND, RecordingConfig
from bertology.recording.recording_work import TOKENS_PER_WORD, count_words_per_input
from bertology.work_estimate import MESSAGE_SECONDS, WorkEstimate

PASSES = 10
"""More forward passes than the claims make over the corpus; only for what is not measured."""


def estimate_atlas(models: Sequence[Any], task: JudgingTask, n_workers: int) -> WorkEstimate:
    """Seconds and bytes of judging the models that are not stored; small work is estimated from counts alone."""
    pending = [model for model in models if not isinstance(model, str) or stored_model(model, task) is None]
    sizes = {index: _file_bytes(model) for index, model in enumerate(pending)}
    rough = _rough_seconds(task, sum(sizes.values()), len(pending))
    if rough < MESSAGE_SECONDS and all(sizes.values()):
        return WorkEstimate(rough / max(1, n_workers))
    for index, model in enumerate(pending):
        try:
            work = _estimate_model(model, task)
        except Refusal:  # it will stand on the page with the reason
            continue
        measured = sizes[index] or 1
        relative = [(size or measured) / measured for size in sizes.values()]
        # A model is judged by one worker: no number of workers is faster than the largest model.
        rounds = max(sum(relative) / max(1, n_workers), *relative)
        return WorkEstimate(work.seconds * rounds, work.n_bytes * sum(relative))
    return WorkEstimate()


def _estimate_model(model: Any, task: JudgingTask) -> WorkEstimate:
    encoder: Encoder = load(model, **task.loading) if isinstance(model, str) else as_encoder(model)
    overflow = task.arguments.get("overflow")
    config = RecordingConfig(overflow=overflow or "skip")
    inputs = RunInputs(corpus=task.corpus, encoder=encoder, config=config, store=task.store)
    max_unknown = task.arguments.get("max_unknown", MAX_UNKNOWN)
    return estimate_claims(task.claims, inputs, max_unknown=max_unknown, overflow=overflow)


def _file_bytes(model: Any) -> int:
    """The size of a model's files; 0 if it is in memory, or if its name does not say where they are."""
    files = model_files(model) if isinstance(model, str) else None
    return sum(file.stat().st_size for file in files or ())


def _rough_seconds(task: JudgingTask, n_bytes: int, n_models: int) -> float:
    """Seconds on one core by counts: every weight, of four bytes, with every token in every pass."""
    words, scale = count_words_per_input(task.corpus)
    n_words = int(words.sum() * scale)
    names = {run.analysis for claim in task.claims for run in claim.all_runs.values()}
    analyses = [analysis for name in names if (analysis := registry.find(name)) is not None]
    passes = PASSES * TOKENS_PER_WORD * n_words * n_bytes / 4 / WORK_PER_SECOND
    return passes + n_models * sum(analysis.cost.estimate(n_words) for analysis in analyses)
