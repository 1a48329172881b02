"""The Ray engine: actors of a Ray cluster, one for each GPU or group of cores. Ray is imported with the engine."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import signal
import socket
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from time import monotonic
from typing import Any

from bertology.engines.engine import (
    MAX_TRIES,
    Engine,
    EngineError,
    Job,
    Outcome,
    TaskProgress,
    WorkerTask,
    allowed_threads,
    lost_worker,
)
from bertology.engines.pickling import dump_value, load_value
from bertology.engines.task_runner import Answer, TaskRunner, load_error
from bertology.errors import MachineError, Refusal, UnusedWorkerWarning
from bertology.lazy import torch
from bertology.machine_errors import is_storage_error
from bertology.progress import ProgressCallback, no_progress

CORES_PER_WORKER = 4
"""Cores of a worker without a GPU; a forward pass over batches of sentences gains little from more."""
CONNECT_SECONDS = 5.0
START_SECONDS = 600.0
"""How long the cluster may take to start a worker while none runs; a busy machine imports torch for minutes."""
WAIT_SECONDS = 1.0
HTTP2_SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
"""An empty frame of settings, with which both sides of gRPC begin: its length, its kind (4), flags and stream."""
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HTTP2_SETTINGS
EXTRA = "pip install 'bertology[ray]'"


class RayWorker:
    """An actor: a `TaskRunner` on some node."""

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self._runner = TaskRunner()

    def start(self, job: Job, payload: bytes) -> tuple[str, Answer]:
        """The node, and the answer to a job, whose payload comes from the object store."""
        return platform.node(), self._runner.start(replace(job, payload=payload))

    def run(self, arguments: bytes) -> Answer:
        """The answer to a task."""
        return self._runner.run(arguments, no_progress)


class RayEngine(Engine):
    """Actors of the cluster at `address`; without one, of the cluster of this machine, or of one started for it."""

    def __init__(self, address: str | None = None) -> None:
        self.name = "ray" if address is None else f"ray:{address}"
        is_own = address is None and not os.environ.get("RAY_ADDRESS") and not _is_cluster_here()
        self._ray = _import_ray(is_own=is_own)
        self._actors: list[_Actor] = []
        self._unused: list[_Actor] = []
        """Actors that do not fit the job or cannot store: kept without tasks, so that no other takes their place."""
        self._unfit: list[MachineError] = []
        """Why those of them that were given no task do not fit the job."""
        self._n_lost_starts = 0
        self._is_connected_here = not self._ray.is_initialized()
        if self._is_connected_here:
            _connect(self._ray, address, is_own=is_own)
        self._resources = _worker_resources(self._ray)

    @property
    def n_workers(self) -> int:
        """How many workers that can be used the cluster has room for now."""
        return max(0, _n_workers(self._ray, self._resources) - len(self._unused))

    def close(self) -> None:
        """End all actors, and the connection if this engine made it."""
        self._end_actors()
        if self._is_connected_here and self._ray.is_initialized():
            self._ray.shutdown()

    def _end_actors(self) -> None:
        actors, self._actors, self._unused = [*self._actors, *self._unused], [], []
        for actor in actors:
            actor.end()

    def outcomes(
        self, job: Job, tasks: Sequence[WorkerTask], *, isolated: bool, progress: TaskProgress | None
    ) -> Iterator[Outcome]:
        """The outcomes as they come; a worker that is lost is replaced, and its task goes to the next free one."""
        waiting: deque[tuple[WorkerTask, int]] = deque((task, 1) for task in tasks)
        payload = self._ray.put(job.payload)
        start = replace(job, payload=b"")
        callbacks: dict[str, ProgressCallback] = {}
        n_left, last_answer, is_complete, has_failed = len(tasks), monotonic(), False, False
        self._n_lost_starts = 0
        for actor in self._unused:  # there may be space again, and another job may suit them
            actor.end()
        self._unused, self._unfit = [], []
        try:
            while n_left:
                self._start_actors(len(waiting))
                for actor in self._actors:
                    if actor.pending is None:
                        actor.give(start, payload, waiting)
                        if progress is not None and actor.task is not None:
                            callbacks[actor.task[0].label] = progress(actor.task[0])
                for actor in self._ready():
                    last_answer = monotonic()
                    outcome = self._collect(actor, job, waiting, isolated=isolated)
                    if outcome is not None:
                        n_left -= 1
                        has_failed = has_failed or outcome.error is not None
                        callbacks.get(outcome.task.label, no_progress)(1, 1)
                        yield outcome
                        yield from (lost := self._without_storage(outcome, waiting))
                        n_left -= len(lost)
                if n_left and self._unfit and not self._actors and not self.n_workers:
                    raise self._unfit[0]
                if not any(actor.node for actor in self._actors) and monotonic() - last_answer > START_SECONDS:
                    raise self._unfit[0] if self._unfit else _no_worker(self._resources)
            if self._unfit and not has_failed:
                raise self._unfit[0]
            is_complete = True
        finally:
            if not is_complete:
                self._end_actors()

    def _start_actors(self, n_waiting: int) -> None:
        """Start as many actors as there are tasks and room for: nodes may have joined or been lost."""
        n_busy = sum(actor.task is not None for actor in self._actors)
        for _ in range(min(n_waiting + n_busy, max(1, self.n_workers)) - len(self._actors)):
            self._actors.append(_Actor(self._ray, self._resources))

    def _without_storage(self, outcome: Outcome, waiting: deque[tuple[WorkerTask, int]]) -> list[Outcome]:
        """The tasks that are left, with the error of the last one, if no node can store anything."""
        if self._actors or self.n_workers or outcome.error is None or not is_storage_error(outcome.error):
            return []
        lost = [replace(outcome, task=task) for task, _ in waiting]
        waiting.clear()
        return lost

    def _ready(self) -> list[_Actor]:
        pending = {actor.pending: actor for actor in self._actors if actor.pending is not None}
        try:
            ready, _ = self._ray.wait(list(pending), num_returns=1, timeout=WAIT_SECONDS)
        except (self._ray.exceptions.RaySystemError, ConnectionError) as error:
            raise _lost_cluster(error) from error
        return [pending[reference] for reference in ready]

    def _collect(
        self, actor: _Actor, job: Job, waiting: deque[tuple[WorkerTask, int]], *, isolated: bool
    ) -> Outcome | None:
        """The outcome of the task of an actor that has answered; None if it has started, or if it was lost."""
        task, tries = actor.task if actor.task is not None else (None, 0)
        try:
            kind, content = actor.answer()
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            if not self._ray.is_initialized():
                raise _lost_cluster(error) from error
            missing = _missing_package(error) if task is None else None
            if missing is not None:
                self._set_aside(actor, missing)
                return None
            self._actors.remove(actor)
            actor.end()
            if task is None:
                self._n_lost_starts += 1
                if self._n_lost_starts > MAX_TRIES * max(1, self.n_workers):
                    raise _lost_starts(self._n_lost_starts, error) from error
                return None
            if tries < MAX_TRIES:
                waiting.appendleft((task, tries + 1))
                return None
            return Outcome(task, error=lost_worker(task, type(error).__name__), node=actor.node)
        if task is None:
            # An earlier job may have ended while the actor started, and its folder may be gone.
            if kind == "error" and actor.job == job.key:
                error = load_error(content)
                if not isinstance(error, MachineError):
                    raise error
                self._set_aside(actor, error)
                return None
            self._n_lost_starts = 0
            return None
        outcome = Outcome(task, error=load_error(content), node=actor.node) if kind == "error" else None
        if outcome is not None and outcome.error is not None and is_storage_error(outcome.error):
            self._actors.remove(actor)
            self._unused.append(actor)
        elif isolated:
            self._actors.remove(actor)
            actor.end()
        return outcome or Outcome(task, load_value(content), node=actor.node)

    def _set_aside(self, actor: _Actor, error: MachineError) -> None:
        """Keep an actor that does not fit the job without tasks."""
        self._actors.remove(actor)
        self._unused.append(actor)
        self._unfit.append(error)
        warnings.warn(f"{error.problem}. It is given no task", UnusedWorkerWarning, stacklevel=2)


class _Actor:
    """An actor with the answer it owes: to a job, or to a task with its number of tries."""

    def __init__(self, ray: Any, resources: dict[str, float]) -> None:
        threads = allowed_threads(max(1, int(resources["num_cpus"])))
        self._ray = ray
        self._handle = ray.remote(**resources, max_restarts=0)(RayWorker).remote(threads)
        self.job = ""
        self.node = ""
        self.task: tuple[WorkerTask, int] | None = None
        self.pending: Any = None

    def give(self, job: Job, payload: Any, waiting: deque[tuple[WorkerTask, int]]) -> None:
        """Send the job if it is new to the actor, else the next task if there is one."""
        if self.job != job.key:
            self.job = job.key
            self.pending = self._handle.start.remote(job, payload)
        elif waiting:
            self.task = waiting.popleft()
            self.pending = self._handle.run.remote(dump_value(self.task[0].arguments, self.task[0].label))

    def answer(self) -> Answer:
        """The answer that has come; raises what Ray says if the actor was lost."""
        value = self._ray.get(self.pending)
        is_start, self.pending, self.task = self.task is None, None, None
        if is_start:
            self.node, value = value
        return value

    def end(self) -> None:
        """End the actor."""
        with contextlib.suppress(Exception):  # it may have ended, and the cluster with it
            self._ray.kill(self._handle)


def _is_cluster_here() -> bool:
    """Whether a cluster was started on this machine and answers: Ray notes its address in its folder."""
    folder = os.environ.get("RAY_TMPDIR") or gettempdir()
    try:
        host, _, port = Path(folder, "ray", "ray_current_cluster").read_text("utf-8").strip().rpartition(":")
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def _import_ray(*, is_own: bool) -> Any:
    if is_own:
        # A cluster for this run alone opens no port that others can reach: whatever its name says, this variable has
        # Ray use the loopback interface. It is read when Ray is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        # Ray would give workers a low priority, and beside other processes they would get less than their share.
        os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray must not hide the GPUs of actors that ask for none: it would change what `--device cuda` finds.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise Refusal("Ray is not installed", "the package ray", f"Install it with {EXTRA}") from error
    return ray


def _connect(ray: Any, address: str | None, *, is_own: bool) -> None:
    """Connect to the cluster within seconds, or refuse."""
    if address is not None and address != "auto":
        _check_reachable(address)
    own: dict[str, Any] = {"address": "local", "include_dashboard": False} if is_own else {"address": address}
    handler = signal.getsignal(signal.SIGTERM)
    _print_to_stderr(ray)
    try:
        ray.init(logging_level="ERROR", log_to_driver=False, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        if "ersion mismatch" in str(error):
            raise Refusal(
                f"The Ray cluster has other versions than the driver ({_one_line(error)})",
                "the same versions of Ray and Python everywhere",
                "Install the versions of the cluster, or start the cluster with those of the driver",
            ) from error
        raise _unreachable(address or "auto", _one_line(error)) from error
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray sets its own, which would end the process with another status


def _print_to_stderr(ray: Any) -> None:
    """Have Ray print what happens to nodes to stderr: it would go to stdout, which is for results."""
    worker = ray._private.worker
    print_lines = getattr(worker, "print_to_stdstream", None)
    if print_lines is None:
        return

    def print_to_stderr(data: dict[str, Any], **options: Any) -> None:
        print_lines({**data, "is_err": True}, **options)

    worker.print_to_stdstream = print_to_stderr


def _check_reachable(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise Refusal(
            f"The address of the Ray cluster is {address!r}",
            "HOST:PORT as `ray start --head` prints it, ray://HOST:PORT, or auto",
            "Write for example --engine ray:127.0.0.1:6379",
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as connection:
            is_cluster = os.environ.get("RAY_USE_TLS", "0") not in {"0", ""} or _speaks_grpc(connection)
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from error
    if not is_cluster:
        raise _unreachable(address, "what listens there is no Ray cluster")


def _speaks_grpc(connection: socket.socket) -> bool:
    """Whether the other side begins as a server of gRPC does; Ray itself would try for a quarter of an hour."""
    connection.sendall(HTTP2_PREFACE)
    frame = b""
    while len(frame) < len(HTTP2_SETTINGS):
        received = connection.recv(len(HTTP2_SETTINGS) - len(frame))
        if not received:
            return False
        frame += received
    return frame[3] == HTTP2_SETTINGS[3]


def _unreachable(address: str, reason: str) -> Refusal:
    return Refusal(
        f"No Ray cluster answers at {address} ({reason})",
        "the address of a running cluster",
        "Start one with `ray start --head`, check the address, or leave it out to use this machine",
    )


def _missing_package(error: BaseException) -> EngineError | None:
    """Why an actor could not be made, if its node lacks a package."""
    text = str(error)
    if "No module named" not in text:
        return None
    missing = text.partition("No module named")[2].split("\n")[0].strip()
    address = re.search(r"\bip=([^,)\s]+)", text)
    return EngineError(
        f"The worker on {address[1] if address else 'a node'} cannot import {missing}",
        "the packages of the driver on all nodes",
        "Install bertology, with the versions of the driver, on all nodes",
    )


def _lost_cluster(error: BaseException) -> MachineError:
    return MachineError(
        f"The connection to the Ray cluster was lost ({_one_line(error)})",
        "a cluster that runs",
        "Start it again, and run the same command: finished work is kept",
    )


def _lost_starts(n_times: int, error: BaseException) -> MachineError:
    return MachineError(
        f"Workers of the Ray cluster ended {n_times} times while they started ({type(error).__name__})",
        "workers that load the model; a system that is short of memory ends processes",
        "Use fewer workers for each node, or nodes with more memory, and run the same command: finished work is kept",
    )


def _no_worker(resources: dict[str, float]) -> MachineError:
    needed = ", ".join(f"{value:g} {name.removeprefix('num_')}" for name, value in resources.items() if value)
    return MachineError(
        f"The Ray cluster has started no worker in {START_SECONDS:.0f} seconds (a worker needs {needed})",
        "a cluster with free resources",
        "Look at `ray status`; end other jobs, or add nodes, and run the same command: finished work is kept",
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _worker_resources(ray: Any) -> dict[str, float]:
    """What each worker takes: a GPU where nodes have some, else a group of cores."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    with_gpu = [node for node in nodes if node.get("GPU", 0) >= 1]
    cores = min((node.get("CPU", 1.0) for node in with_gpu or nodes), default=1.0)
    if with_gpu:
        return {"num_cpus": 1.0, "num_gpus": 1.0}
    return {"num_cpus": max(1.0, min(float(CORES_PER_WORKER), cores)), "num_gpus": 0.0}


def _n_workers(ray: Any, resources: dict[str, float]) -> int:
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    per_node = (
        min(node.get(names[name], 0.0) // value for name, value in resources.items() if value) for node in alive
    )
    return int(sum(per_node))
