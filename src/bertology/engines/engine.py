"""Engines run independent tasks in workers: processes of this machine, or actors of a Ray cluster.

A task is a function of a module with its arguments. What all tasks of a run share, such as an encoder, is sent to each
worker once. Results are files in a folder that all workers see; a task returns little.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertology.atomic_files import partial_file, remove_stale_partials
from bertology.engines.runtime import runtime_versions
from bertology.errors import CostError, ExplainedError, MachineError, Refusal, count_noun
from bertology.machine_errors import find_machine_error, is_storage_error
from bertology.progress import ProgressCallback
from bertology.store_paths import RemotePath, StorePath

MAX_TRIES = 3
"""A task whose worker ended before it did is tried so many times."""
MAX_LISTED = 3
MAX_WORKERS = 1024


@dataclass(frozen=True)
class WorkerTask:
    """The arguments of one call, and what it is, for messages."""

    label: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """The value of a task, or the error that it ended with; `node` is the machine it ran on."""

    task: WorkerTask
    value: Any = None
    error: Exception | None = None
    node: str = ""


@dataclass(frozen=True)
class Job:
    """What the workers of a run are told: the function with its first argument, the folder, and the versions.

    `token_file` in `folder` holds the `token`, by which a worker knows that it sees the same folder. With
    `takes_progress` the function takes a callback as its argument `progress`.
    """

    key: str
    payload: bytes
    folder: str
    token_file: str
    token: str
    versions: dict[str, str]
    takes_progress: bool = False


TaskProgress = Callable[[WorkerTask], ProgressCallback]
"""Starts the display of a task, and returns its callback."""


class EngineError(MachineError):
    """A worker that does not fit the run, or a node that cannot go on: other versions, no permission, a full disk.

    It ends the command, like every failure of the machine, but with status 2: what was given is to be corrected.
    """

    status = 2


class Engine(ABC):
    """Runs tasks in workers; to be closed when no further tasks come (`with engine:`)."""

    name: str

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many tasks can run at the same time."""

    @property
    def threads_per_worker(self) -> int | None:
        """The threads of each worker, if workers share the cores of this machine."""
        return None

    @abstractmethod
    def outcomes(
        self, job: Job, tasks: Sequence[WorkerTask], *, isolated: bool, progress: TaskProgress | None
    ) -> Iterator[Outcome]:
        """The outcomes of all tasks as they come; called by `run`."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""

    def run(
        self,
        function: Callable[..., Any],
        shared: Any,
        tasks: Sequence[WorkerTask],
        *,
        folder: StorePath,
        isolated: bool = False,
        progress: TaskProgress | None = None,
    ) -> Iterator[Outcome]:
        """Call `function(shared, *arguments)` for each task in some worker; the outcomes as they come.

        All workers must see `folder`. A task whose worker ended is tried again, at most `MAX_TRIES` times; one that
        raises an exception is not, and the others go on. A worker that cannot use its disk or the store is given no
        further task, and when there is no other the tasks that are left end with its error. A worker that does not fit
        the run is given no task; its error is raised after the last outcome, unless a task has failed, or at once if
        there is no other worker. With `isolated` each task has a worker of its own, whose memory is given back. With
        `progress` the function takes the callback of its task as `progress`.
        """
        from bertology.engines.pickling import dump_value

        if not tasks:
            return
        payload = dump_value((function, shared), "What the tasks share")
        with _token(folder) as (token_file, token):
            address = str(folder.absolute() if isinstance(folder, Path) else folder)
            takes_progress = progress is not None
            key, versions = secrets.token_hex(8), runtime_versions()
            job = Job(key, payload, address, token_file, token, versions, takes_progress)
            yield from self.outcomes(job, tasks, isolated=isolated, progress=progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _token(folder: StorePath) -> Generator[tuple[str, str]]:
    """A file with a random token in the folder, for workers to read, while the block runs."""
    token = secrets.token_hex(16)
    if isinstance(folder, RemotePath):
        remote = folder / f"engine-{token[:8]}.token"
        remote.create_bytes(token.encode())
        try:
            yield remote.name, token
        finally:
            remote.unlink(missing_ok=True)
        return
    if folder.is_dir():
        remove_stale_partials(folder)  # of drivers that were killed
    with partial_file(folder, f"engine-{token[:8]}") as (stream, file):
        stream.write(token.encode())
        stream.flush()
        os.fsync(stream.fileno())
        yield file.name, token


def parse_engine(text: str) -> Engine | None:
    """The engine of `local`, `local:4`, `ray` or `ray:ADDRESS`; None for `local`: this process does everything."""
    kind, _, detail = text.partition(":")
    if text == "local":
        return None
    if kind == "local":
        from bertology.engines.local import LocalEngine

        if not detail.isdecimal() or not 1 <= int(detail) <= MAX_WORKERS:
            raise Refusal(
                f"The engine {text!r} has no number of processes",
                f"local:N with N from 1 to {MAX_WORKERS}",
                "Write for example --engine local:4",
            )
        return LocalEngine(int(detail))
    if kind == "ray" and (detail or text == "ray"):
        from bertology.engines.ray_cluster import RayEngine

        return RayEngine(detail or None)
    raise Refusal(
        f"There is no engine {text!r}",
        "local (this process), local:N (N processes), ray, or ray:ADDRESS",
        "Write for example --engine local:4, or --engine ray:127.0.0.1:6379",
    )


@contextmanager
def open_engine(engine: Engine | str | None) -> Generator[Engine | None]:
    """The engine of a name, closed when the block ends; an engine that was given stays open."""
    if not isinstance(engine, str):
        yield engine
        return
    opened = parse_engine(engine)
    if opened is None:
        yield None
        return
    with opened:
        yield opened


def raise_failures(failures: Sequence[Outcome]) -> None:
    """Raise what the failed tasks of a run ended with, if any failed, as one error that names them."""
    if not failures:
        return
    first = failures[0]
    assert first.error is not None
    if isinstance(first.error, Refusal | CostError):
        raise first.error
    explained = find_machine_error(first.error)
    is_given = explained is not None and (explained.status == EngineError.status or is_storage_error(explained))
    kind = EngineError if is_given else MachineError
    detail = explained.problem if explained is not None else describe_exception(first.error)
    labels = "; ".join(outcome.task.label for outcome in failures[1:MAX_LISTED])
    more = f" ({count_noun(len(failures) - 1, 'further tasks')} failed too or had no worker: {labels}{_dots(failures)})"
    raise kind(
        f"{first.task.label} failed{f' on {first.node}' if first.node else ''}: {detail}"
        f"{more if len(failures) > 1 else ''}",
        explained.expected if explained is not None else "a task that runs",
        explained.remedy
        if explained is not None
        else "All other tasks are finished and kept; correct the cause and run the same command again",
    ) from first.error


def _dots(failures: Sequence[Outcome]) -> str:
    return " ..." if len(failures) > MAX_LISTED else ""


def describe_exception(error: BaseException) -> str:
    """An exception in one line; of one that is explained, its problem."""
    if isinstance(error, ExplainedError):
        return error.problem
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def allowed_threads(threads: int) -> int:
    """So many threads, and no more than OMP_NUM_THREADS allows this process: other threads, other last digits."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return min(threads, int(given)) if given.isdecimal() and int(given) else threads


def lost_worker(task: WorkerTask, reason: str) -> MachineError:
    """The error of a task whose workers ended each time before it did."""
    return MachineError(
        f"The worker of {task.label} ended {MAX_TRIES} times before the task did ({reason})",
        "a worker that goes on; a system that is short of memory ends processes",
        "Use fewer workers, shorter inputs or more memory, and run the same command again: finished work is kept",
    )


def refuse_without_store(engine: object, store: object) -> None:
    """Refuse an engine without a store: the workers' results are files in it."""
    if engine is not None and store is None:
        raise Refusal(
            "An engine was given, and no store",
            "a store that all workers see: their results are files in it",
            "Name one with --store DIR (store= in Python), or leave out the engine",
        )
