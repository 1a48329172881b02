"""The queue of jobs: one worker process at a time; what was running when the server ended runs again."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import time
from typing import IO

from bertology.errors import Refusal
from bertology.server.jobs import (
    FINISHED,
    MAX_RESTARTS,
    REFUSAL_FILE,
    JobAnswer,
    JobFolder,
    JobRecord,
    JobRequest,
    JobState,
)
from bertology.server.limits import LIMITS
from bertology.server.problems import ApiError, Problem, describe_problem
from bertology.server.worker import REFUSED

END_SECONDS = 5.0
MAX_FOLDERS = 10
INTERRUPTED = (-signal.SIGINT, -signal.SIGTERM)
"""How a worker ends that was told to: a terminal or a service manager tells it together with the server, or before."""


class JobQueue:
    """Jobs in the order of their requests.

    `folder` is locked; a second server with the same store has a queue of its own.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        self.store = store
        self._lock_file, locked = _lock_folder(folder)
        self.files = JobFolder(locked)
        self._jobs = {job.id: job for job in self.files.jobs()}
        self._condition = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._running = ""
        self._is_closed = False
        for job in self._jobs.values():
            if job.state == "running":
                self._resume(job)
        self._thread = threading.Thread(target=self._work, name="bertology-jobs", daemon=True)

    def start(self) -> None:
        """Begin to work on the queue."""
        self._thread.start()

    def submit(self, request: JobRequest, sources: dict[str, str], estimate: float | None = None) -> JobAnswer:
        """Queue a job; the same request, while it waits or runs, is the same job."""
        with self._condition:
            pending = [job for job in self._jobs.values() if job.state in {"queued", "running"}]
            same = next((job for job in pending if job.request == request), None)
            if same is not None:
                return self.files.answer(same)
            if len(pending) >= LIMITS.queued_jobs:
                raise ApiError(
                    429,
                    Refusal(
                        f"{len(pending)} jobs wait",
                        f"at most {LIMITS.queued_jobs}",
                        "Cancel one, or wait until one is done",
                    ),
                )
            job = self.files.create(request, sources, self.store, estimate)
            self._jobs[job.id] = job
            self._remove_oldest()
            self._condition.notify_all()
            return self.files.answer(job)

    def answers(self) -> list[JobAnswer]:
        """All jobs, newest first."""
        with self._condition:
            jobs = list(self._jobs.values())
        return [self.files.answer(job) for job in reversed(jobs)]

    def get(self, job_id: str) -> JobRecord:
        """A job by its id."""
        job = self._jobs.get(job_id)
        if job is None:
            raise ApiError(404, Refusal(f"There is no job {job_id[:60]!r}", "the id of a job", "See /api/jobs"))
        return job

    def answer(self, job_id: str) -> JobAnswer:
        """A job and its progress."""
        return self.files.answer(self.get(job_id))

    def cancel(self, job_id: str) -> JobAnswer:
        """Take a job from the queue, or end its worker."""
        with self._condition:
            job = self.get(job_id)
            if job.state in {"queued", "running"}:
                self._set_state(job, "cancelled")
                if self._running == job_id and self._process is not None:
                    self._process.terminate()
        return self.answer(job_id)

    def retry(self, job_id: str) -> JobAnswer:
        """Queue a job again that failed or was cancelled; what is finished of it is not repeated."""
        with self._condition:
            job = self.get(job_id)
            if job.state in {"failed", "cancelled"}:
                self._replace(
                    job.model_copy(update={"state": "queued", "problem": None, "finished": None, "restarts": 0})
                )
                self._condition.notify_all()
        return self.answer(job_id)

    def remove(self, job_id: str) -> None:
        """Delete a finished job."""
        with self._condition:
            if self.get(job_id).state not in FINISHED:
                raise ApiError(409, Refusal("The job is not finished", "a finished job", "Cancel it first"))
            del self._jobs[job_id]
            self.files.remove(job_id)

    def close(self) -> None:
        """End the worker; its job is resumed when a server starts again."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
            if self._process is not None:
                self._process.terminate()
        if self._thread.is_alive():
            self._thread.join(END_SECONDS + 1)
        self._lock_file.close()

    @property
    def worker_id(self) -> int | None:
        """The process id of the worker, if one runs."""
        return self._process.pid if self._process is not None else None

    def _work(self) -> None:
        while True:
            with self._condition:
                job = self._next()
                while job is None and not self._is_closed:
                    self._condition.wait()
                    job = self._next()
                if self._is_closed or job is None:
                    return
                self._set_state(job, "running")
                folder = self.files.path(job.id)
                for name in ("progress.json", REFUSAL_FILE):
                    (folder / name).unlink(missing_ok=True)
                self._running = job.id
                try:
                    self._process = _start_worker(folder)
                except OSError:
                    self._running = ""
                    self._set_state(job, "failed", _worker_problem(None))
                    continue
            status = self._wait()
            with self._condition:
                self._process, self._running = None, ""
                self._finish(self._jobs.get(job.id), status)

    def _wait(self) -> int:
        """The status of the worker; one that does not end when it is told to is killed."""
        process = self._process
        assert process is not None, "a worker was started"
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(END_SECONDS)
            job = self._jobs.get(self._running)
            if self._is_closed or job is None or job.state == "cancelled":
                process.kill()

    def _finish(self, job: JobRecord | None, status: int) -> None:
        if job is None or job.state == "cancelled":
            return
        if self._is_closed and status != 0:
            self._replace(job.model_copy(update={"state": "queued"}))
            return
        if status in INTERRUPTED:
            self._resume(job)
        elif status == 0:
            self._set_state(job, "done")
        elif status == REFUSED:
            try:
                problem = self.files.refusal(job.id)
            except Refusal as refusal:
                problem = describe_problem(refusal)
            self._set_state(job, "failed", problem)
        else:
            self._set_state(job, "failed", _worker_problem(status))

    def _next(self) -> JobRecord | None:
        return next((job for job in self._jobs.values() if job.state == "queued"), None)

    def _resume(self, job: JobRecord) -> None:
        """Queue a job again whose server or worker was ended from outside, unless that has happened several times."""
        if job.restarts + 1 >= MAX_RESTARTS:
            self._set_state(job, "failed", _worker_problem(None))
        else:
            self._replace(job.model_copy(update={"state": "queued", "restarts": job.restarts + 1}))

    def _set_state(self, job: JobRecord, state: JobState, problem: Problem | None = None) -> None:
        changes = {"state": state, "problem": problem}
        changes |= {"started": time()} if state == "running" else {"finished": time()} if state in FINISHED else {}
        self._replace(job.model_copy(update=changes))

    def _replace(self, job: JobRecord) -> None:
        self._jobs[job.id] = job
        self.files.write(job)

    def _remove_oldest(self) -> None:
        finished = [job.id for job in self._jobs.values() if job.state in FINISHED]
        for job_id in finished[: max(0, len(self._jobs) - LIMITS.kept_jobs)]:
            del self._jobs[job_id]
            self.files.remove(job_id)


def _start_worker(folder: Path) -> subprocess.Popen[bytes]:
    """Start the worker of a job; its messages go to a file, which no answer shows."""
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bertology.server.worker", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )


def _worker_problem(status: int | None) -> Problem:
    ended = (
        "did not finish"
        if status is None
        else f"ended by signal {-status}"
        if status < 0
        else f"ended with status {status}"
    )
    cause = " (killed, perhaps for lack of memory)" if status == -9 else ""
    refusal = Refusal(
        f"The process that computed this job {ended}{cause}",
        "a result",
        "Retry it: finished parts are kept; the folder of the job on the server has a log",
    )
    return describe_problem(refusal)


def _lock_folder(folder: Path) -> tuple[IO[str], Path]:
    """The first folder `jobs`, `jobs-2` ... that no other server uses, locked until this process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, MAX_FOLDERS + 1):
        path = folder / ("jobs" if number == 1 else f"jobs-{number}")
        path.mkdir(exist_ok=True)
        file = (folder / f"{path.name}.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        return file, path
    raise Refusal(f"{MAX_FOLDERS} servers use this store", "fewer", "End one, or choose another --store")
