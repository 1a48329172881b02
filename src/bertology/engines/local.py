"""The local engine: worker processes of this machine that share its cores or its GPUs."""

from __future__ import annotations

import os
import pickle
import platform
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from bertology.engines.engine import (
    MAX_TRIES,
    Engine,
    Job,
    Outcome,
    TaskProgress,
    WorkerTask,
    allowed_threads,
    lost_worker,
)
from bertology.engines.pickling import dump_value, load_value
from bertology.engines.task_runner import load_error
from bertology.machine_errors import is_storage_error
from bertology.progress import ProgressCallback, no_progress

WORKER = "bertology.engines.worker"
END_SECONDS = 10.0
"""How long a worker may take to end before it is killed."""


class WorkerEndedError(Exception):
    """A worker process ended instead of answering; the message says how."""


class LocalEngine(Engine):
    """`n_workers` processes, each with its part of the cores and, if there are GPUs, one of them."""

    def __init__(self, n_workers: int) -> None:
        self.name = f"local:{n_workers}"
        self._n_workers = n_workers
        self._lock = threading.Lock()
        self._is_closed = False
        self._workers: dict[int, _WorkerProcess] = {}

    @property
    def n_workers(self) -> int:
        """The number of processes."""
        return self._n_workers

    @property
    def threads_per_worker(self) -> int:
        """Its part of the cores."""
        return worker_threads(self._n_workers)

    def outcomes(
        self, job: Job, tasks: Sequence[WorkerTask], *, isolated: bool, progress: TaskProgress | None
    ) -> Iterator[Outcome]:
        """The outcomes as they come: a thread for each worker gives it one task after the other."""
        waiting: queue.SimpleQueue[tuple[WorkerTask, int]] = queue.SimpleQueue()
        for task in tasks:
            waiting.put((task, 1))
        finished: queue.SimpleQueue[Outcome | Exception] = queue.SimpleQueue()
        is_stopped = threading.Event()
        storage_errors: list[Exception] = []

        def work(number: int) -> None:
            while not is_stopped.is_set():
                try:
                    task, tries = waiting.get(timeout=0.05)
                except queue.Empty:
                    continue
                if storage_errors:  # the disk is that of all workers: what they compute could not be kept
                    finished.put(Outcome(task, error=storage_errors[0], node=platform.node()))
                    continue
                try:
                    outcome = self._run_task(number, job, task, progress, isolated=isolated)
                except WorkerEndedError as error:
                    self._forget(number)
                    if is_stopped.is_set():
                        return
                    if tries < MAX_TRIES:
                        waiting.put((task, tries + 1))
                        continue
                    outcome = Outcome(task, error=lost_worker(task, str(error)), node=platform.node())
                except Exception as error:  # the worker does not fit the run: nothing can go on
                    finished.put(error)
                    return
                finished.put(outcome)
                if outcome.error is not None and is_storage_error(outcome.error) and not isolated:
                    storage_errors.append(outcome.error)

        threads = [
            threading.Thread(target=work, args=(number,), daemon=True)
            for number in range(min(self._n_workers, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        is_complete = False
        try:
            for _ in tasks:
                outcome = finished.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome
            is_complete = True
        finally:
            is_stopped.set()
            if not is_complete:  # interrupted: nobody waits for the tasks that run
                self._end_workers()
            for thread in threads:
                thread.join()

    def _run_task(
        self, number: int, job: Job, task: WorkerTask, progress: TaskProgress | None, *, isolated: bool
    ) -> Outcome:
        worker = self._worker(number)
        if worker.job != job.key:
            kind, content = worker.request("job", job, no_progress)
            if kind == "error":
                raise load_error(content)
            worker.job = job.key
        arguments = dump_value(task.arguments, task.label)
        callback = progress(task) if progress is not None else no_progress
        kind, content = worker.request("task", arguments, callback)
        if isolated:
            self._forget(number)
        if kind == "error":
            return Outcome(task, error=load_error(content), node=platform.node())
        return Outcome(task, load_value(content), node=platform.node())

    def _worker(self, number: int) -> _WorkerProcess:
        with self._lock:
            if self._is_closed:
                raise WorkerEndedError("the engine was closed")
            if number not in self._workers:
                self._workers[number] = _WorkerProcess(number, self._n_workers)
            return self._workers[number]

    def _forget(self, number: int) -> None:
        with self._lock:
            worker = self._workers.pop(number, None)
        if worker is not None:
            worker.end()

    def _end_workers(self) -> None:
        with self._lock:
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()

    def close(self) -> None:
        """End all workers; further tasks are not started."""
        with self._lock:
            self._is_closed = True
        self._end_workers()


class _WorkerProcess:
    """A worker process; one thread talks to it at a time."""

    def __init__(self, number: int, n_workers: int) -> None:
        self.job = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(number, n_workers),
        )

    def request(self, kind: str, content: Any, progress: ProgressCallback) -> tuple[str, bytes]:
        """Send a message, hand on the progress it reports, and return its answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            pickle.dump((kind, content), self.process.stdin)
            self.process.stdin.flush()
            while True:
                answer, value = pickle.load(self.process.stdout)
                if answer != "progress":
                    return answer, value
                progress(*value)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError) as error:
            self.process.kill()
            status = self.process.wait()
            raise WorkerEndedError(f"process {self.process.pid} ended with status {status}") from error

    def end(self) -> None:
        """End the process; one that waits for a task ends by itself."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def worker_threads(n_workers: int) -> int:
    """The threads of each worker: its part of the cores, and no more than OMP_NUM_THREADS allows."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return allowed_threads(max(1, cores // n_workers))


def _environment(number: int, n_workers: int) -> dict[str, str]:
    """Its part of the cores, one of the GPUs, and the modules that this process can import."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(worker_threads(n_workers))}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    gpus = _gpus()
    return environment | ({"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if gpus else {})


def _gpus() -> list[str]:
    """The GPUs of this process, as CUDA_VISIBLE_DEVICES names them; none if torch was not needed so far."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [name for name in names.split(",") if name] or [str(number) for number in range(torch.cuda.device_count())]
