"""Judge the models of an atlas in the workers of an engine, each in a process of its own.

What a model takes in memory is given back, and one that fails or is killed does not end the others.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bertology.atlas.judged_model import JudgedModel, NotJudged
from bertology.atlas.judging import JudgingTask, judge_source
from bertology.engines.engine import Engine, Outcome, WorkerTask, describe_exception, open_engine, refuse_without_store
from bertology.engines.local import LocalEngine
from bertology.errors import ExplainedError, MachineError, Refusal
from bertology.machine_errors import find_machine_error
from bertology.progress import ProgressCallback, ProgressFactory, no_progress
from bertology.store_paths import StorePath


def judge_in_workers(
    sources: Sequence[str], task: JudgingTask, engine: Engine | str | None, progress: ProgressFactory | None
) -> dict[str, JudgedModel | NotJudged]:
    """Judge the models of these names; one that refuses, fails or is killed is named with the reason."""

    def start(each: WorkerTask) -> ProgressCallback:
        callback = progress(each.label) if progress is not None else no_progress
        callback(0, 1)
        return callback

    tasks = [WorkerTask(source, (source,)) for source in sources]
    chosen = "local:1" if engine is None or engine == "local" else engine
    with open_engine(chosen) as workers:
        assert workers is not None, "models are judged in processes of their own"
        with _shared_folder(task, workers) as folder:
            outcomes = list(workers.run(judge_task, task, tasks, folder=folder, isolated=True, progress=start))
    return {outcome.task.label: _judged(outcome) for outcome in outcomes}


def judge_task(task: JudgingTask, source: str, progress: ProgressCallback) -> JudgedModel:
    """Judge one model, in a worker."""
    return judge_source(source, task, progress)


@contextmanager
def _shared_folder(task: JudgingTask, engine: Engine) -> Generator[StorePath]:
    """The store; without one, processes of this machine share a temporary folder."""
    if not isinstance(engine, LocalEngine):
        refuse_without_store(engine, task.store)
    if task.store is not None:
        yield task.store
        return
    with TemporaryDirectory() as folder:
        yield Path(folder)


def _judged(outcome: Outcome) -> JudgedModel | NotJudged:
    source, error = outcome.task.label, outcome.error
    if error is None:
        return outcome.value
    explained = find_machine_error(error) or (error if isinstance(error, Refusal) else _failure(source, error))
    return NotJudged(name=source, reason=str(explained), is_failure=isinstance(explained, MachineError))


def _failure(source: str, error: Exception) -> ExplainedError:
    """A mistake of the program, told in one paragraph."""
    problem = f"{source} failed: {describe_exception(error)}"
    return MachineError(problem, "a model whose forward pass runs", "See `bertology claims`")
