"""Run independent analyses in the workers of an engine: each stores its result, and the run finds it in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.progress_estimate import ProgressEstimate, count_words
from bertology.analyses.recordings_by_role import ForwardPass, RecordingsByRole
from bertology.encoder.load import ModelSource, as_encoder
from bertology.engines.engine import Engine, Outcome, WorkerTask, raise_failures
from bertology.errors import Refusal, count_noun
from bertology.progress import ProgressCallback, ProgressFactory, describe_step, no_progress
from bertology.store_paths import StorePath, make_folder

if TYPE_CHECKING:
    from bertology.analyses.run import Request, RunInputs
    from bertology.progress import MessageCallback

ModelRole = Literal["encoder", "against"]
Batch = tuple[Sequence["Request"], "RunInputs"]
"""Analyses that share their forward passes, with all options, and the inputs of all of them."""


def compute_in_workers(
    batches: Sequence[Batch],
    engine: Engine,
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
    progress_estimate: ProgressEstimate | None = None,
) -> list[ForwardPass]:
    """Store the results of all analyses that have none in the store; returns the forward passes made.

    The recordings are made first, with the sites of all analyses of a batch, as without an engine. Analyses that store
    parts of their own (`cache`) are left to the run itself, which has these parts computed by workers. A refusal is
    left to the run too.
    """
    from bertology.analyses.run import ROLE_NAMES

    passes: list[ForwardPass] = []
    tasks: list[tuple[float, WorkerTask]] = []
    for number, (requests, inputs) in enumerate(batches):
        missing = [(analysis, options) for analysis, options in requests if _is_missing(analysis, options, inputs)]
        if not missing:
            continue
        recordings = RecordingsByRole(requests, inputs, progress, notify, progress_estimate or ProgressEstimate())
        with suppress(Refusal):
            for role in dict.fromkeys(
                role for analysis, _ in missing for role in analysis.inputs if role in ROLE_NAMES
            ):
                recordings[role]
        passes += recordings.passes
        models, n_words = " and ".join(inputs.model_names.values()), count_words(inputs.corpus)
        subject = f"{models} on {inputs.corpus.name}" if inputs.corpus is not None else models
        tasks += [
            (
                analysis.cost.estimate(n_words),
                WorkerTask(f"{analysis.name} of {subject}", (number, _by_name(analysis), dict(options))),
            )
            for analysis, options in missing
        ]
    if len(tasks) < 2:
        return passes
    longest_first = [task for _, task in sorted(tasks, key=lambda each: -each[0])]
    shared = tuple(replace(inputs, engine=None) for _, inputs in batches)
    store = shared[0].store
    assert store is not None, "an engine has a store"
    bar = progress("analyses") if progress is not None else no_progress
    _run_tasks(engine, compute_task, shared, longest_first, store, bar=bar)
    return passes


def _run_tasks(
    engine: Engine,
    compute: Callable[..., None],
    shared: Any,
    tasks: Sequence[WorkerTask],
    store: StorePath,
    *,
    bar: ProgressCallback,
) -> None:
    make_folder(store)
    describe_step(bar, count_noun(min(engine.n_workers, len(tasks)), "workers"))
    bar(0, len(tasks))
    failures: list[Outcome] = []
    for n_done, outcome in enumerate(engine.run(compute, shared, tasks, folder=store), 1):
        bar(n_done, len(tasks))
        if outcome.error is not None:
            failures.append(outcome)
    raise_failures(failures)


def can_spread_models(models: Any, engine: Engine | None) -> bool:
    """Whether each worker can take a model of its own: all are loaded by name, and no worker would have none."""
    return (
        engine is not None
        and isinstance(models, list)
        and len(cast("list[Any]", models)) >= max(2, engine.n_workers)
        and all(isinstance(model, str | ModelSource) for model in cast("list[Any]", models))
    )


def spread_models(
    compute: Callable[..., None],
    shared: Any,
    models: Sequence[str | ModelSource],
    engine: Engine,
    store: StorePath,
    *,
    progress: ProgressFactory | None,
) -> None:
    """Call `compute(shared, model)` for each model in some worker; it stores results, and the run finds them."""
    names = [model if isinstance(model, str) else model.name for model in models]
    _run_tasks(
        engine, compute, shared, [WorkerTask(name, (model,)) for name, model in zip(names, models, strict=True)],
        store, bar=progress("models") if progress is not None else no_progress,
    )  # fmt: skip


def run_model_task(
    shared: tuple[Sequence[tuple[Analysis | str, Mapping[str, Any]]], RunInputs, ModelRole], model: Any
) -> None:
    """Run all analyses for one model, in a worker, and store their results; a refusal is found again by the run."""
    from bertology.analyses.run import run_all

    requests, inputs, role = shared
    declared = [(registry.get(each) if isinstance(each, str) else each, options) for each, options in requests]
    encoder = as_encoder(model)
    with suppress(Refusal):
        of_model = replace(inputs, encoder=encoder) if role == "encoder" else replace(inputs, against=encoder)
        run_all(declared, of_model, cache_results=True)


def spread_runs(
    requests: Sequence[Request],
    inputs: RunInputs,
    models: Sequence[str | ModelSource],
    engine: Engine,
    progress: ProgressFactory | None,
    *,
    role: ModelRole = "encoder",
) -> None:
    """Run the analyses for each model, or against each model, in some worker: one model a task."""
    assert inputs.store is not None, "an engine has a store"
    named = [(_by_name(analysis), dict(options)) for analysis, options in requests]
    shared = (named, replace(inputs, engine=None), role)
    spread_models(run_model_task, shared, models, engine, inputs.store, progress=progress)


def compute_task(
    shared: Sequence[RunInputs], number: int, analysis: Analysis | str, options: Mapping[str, Any]
) -> None:
    """Run one analysis, in a worker, and store its result; a refusal is found again by the run itself."""
    from bertology.analyses.run import run_all

    declared = registry.get(analysis) if isinstance(analysis, str) else analysis
    run_all([(declared, options)], shared[number], cache_results=True)


def _by_name(analysis: Analysis) -> Analysis | str:
    """The name of an analysis that a worker can find by it, else the analysis itself."""
    return analysis.name if registry.find(analysis.name) is analysis else analysis


def _is_missing(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> bool:
    from bertology.analyses.run import stored_result

    return "cache" not in analysis.inputs and stored_result(analysis, inputs, options) is None
