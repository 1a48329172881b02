"""Jobs: analyses, claims, reports and indices that take longer than a request; each is a folder on disk.

    FOLDER/<id>/job.json        what was asked for, and its state
    FOLDER/<id>/progress.json   written by the worker
    FOLDER/<id>/result.json     the result, as `--json` prints it
    FOLDER/<id>/report.html     of a report
    FOLDER/<id>/report.json     the digest of that page
    FOLDER/<id>/refusal.json    why there is none

Every file is written atomically, so that a server or worker may end at any time. All but the progress carry a digest:
what was damaged is refused, and a job whose description was damaged is told and left out.
"""

from __future__ import annotations

import json
import secrets
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any, Literal

from pydantic import BaseModel, Field

from bertology.atomic_files import digest_bytes, digest_file
from bertology.checked_files import DamagedFileError, read_checked_json, write_checked_json
from bertology.errors import DamagedFileWarning, Refusal
from bertology.server.problems import Problem
from bertology.server.texts import RequestModel

JobKind = Literal["analysis", "claims", "report", "links", "states"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]
FINISHED: tuple[JobState, ...] = ("done", "failed", "cancelled")
OptionValue = str | int | float | bool | None
JOB_FILE = "job.json"
RESULT_FILE = "result.json"
REFUSAL_FILE = "refusal.json"
MAX_RESTARTS = 3
MIN_DONE_FRACTION = 0.02


class JobRequest(RequestModel):
    """What is to be computed, with the options of its declaration.

    `analysis`: one by name, with `options` and perhaps `like` a paper. `claims` and `report`: all claims, or those of
    `papers`, on the first `limit` examples; `full` adds those that take minutes. `links` and `states`: the indices of
    the search by links and by similarity.
    """

    kind: JobKind
    analysis: str = Field(default="", max_length=100)
    options: dict[str, OptionValue] = Field(default={}, max_length=50)
    like: str = Field(default="", max_length=50)
    papers: list[str] = Field(default=[], max_length=50)
    limit: int | None = Field(default=None, ge=1)
    full: bool = False
    model: str = ""
    against: str = ""
    corpus: str = ""

    @property
    def title(self) -> str:
        """The job in a few words."""
        names = {"links": "index of links", "states": "index of states"}
        return self.analysis or " ".join([names.get(self.kind, self.kind), *self.papers])


class JobRecord(BaseModel):
    """A job as it is on disk; `sources` are the names that models and corpora are loaded by."""

    id: str
    request: JobRequest
    sources: dict[str, str]
    store: str
    state: JobState = "queued"
    created: float
    started: float | None = None
    finished: float | None = None
    restarts: int = 0
    estimated_seconds: float | None = None
    problem: Problem | None = None


class JobProgress(BaseModel):
    """How far the worker is: `done` of `total`, in any unit, what it does now, and how much of that is done."""

    done: int = 0
    total: int = 0
    step: str = ""
    step_fraction: float = 0.0


class JobAnswer(BaseModel):
    """A job and how far it is; `fraction` and `seconds_left` are null if they are not known."""

    id: str
    title: str
    request: JobRequest
    state: JobState
    created: float
    started: float | None
    finished: float | None
    restarts: int
    step: str
    step_fraction: float
    fraction: float | None
    estimated_seconds: float | None
    seconds_left: float | None
    problem: Problem | None
    has_result: bool
    has_report: bool


class JobFolder:
    """The jobs of a server on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, job_id: str) -> Path:
        """The folder of a job."""
        return self.folder / job_id

    def create(self, request: JobRequest, sources: dict[str, str], store: Path, estimate: float | None) -> JobRecord:
        """Write a new job into the queue."""
        job = JobRecord(
            id=f"{round(time() * 1000):013d}-{secrets.token_hex(4)}",
            request=request,
            sources=sources,
            store=str(store),
            created=time(),
            estimated_seconds=estimate,
        )
        self.write(job)
        return job

    def write(self, job: JobRecord) -> None:
        """Write the state of a job."""
        write_checked_json(self.path(job.id) / JOB_FILE, job.model_dump(mode="json"))

    def jobs(self) -> Iterator[JobRecord]:
        """All jobs, oldest first; a job that cannot be read is told and left out."""
        for folder in sorted(self.folder.iterdir()):
            if not (folder / JOB_FILE).is_file():
                continue
            try:
                yield read_job(folder)
            except (OSError, ValueError) as error:
                problem = str(error) if isinstance(error, DamagedFileError) else f"{folder / JOB_FILE} cannot be read"
                warnings.warn(f"{problem}. The job is left out.", DamagedFileWarning, stacklevel=2)

    def remove(self, job_id: str) -> None:
        """Delete a job and its result."""
        shutil.rmtree(self.path(job_id), ignore_errors=True)

    def answer(self, job: JobRecord) -> JobAnswer:
        """The job with its progress."""
        folder = self.path(job.id)
        progress = read_progress(folder) if job.state in {"running", "done"} else JobProgress()
        fraction = progress.done / progress.total if progress.total else None
        if job.state == "done":
            fraction = 1.0
        return JobAnswer(
            id=job.id,
            title=job.request.title,
            request=job.request,
            state=job.state,
            created=job.created,
            started=job.started,
            finished=job.finished,
            restarts=job.restarts,
            step=progress.step if job.state == "running" else "",
            step_fraction=progress.step_fraction if job.state == "running" else 0.0,
            fraction=fraction,
            estimated_seconds=job.estimated_seconds,
            seconds_left=_seconds_left(job, fraction),
            problem=job.problem,
            has_result=(folder / RESULT_FILE).is_file(),
            has_report=(folder / "report.html").is_file(),
        )

    def result_text(self, job_id: str) -> str:
        """The result of a job, as JSON."""
        file = self.path(job_id) / RESULT_FILE
        if not file.is_file():
            raise Refusal("The job has no result", "a finished job", "Wait until it is done")
        return json.dumps(_read_kept(file), ensure_ascii=False)

    def report_text(self, job_id: str) -> str:
        """The page of a report."""
        file = self.path(job_id) / "report.html"
        if not file.is_file():
            raise Refusal("The job has no report", "a finished job of the kind report", "Wait until it is done")
        content = file.read_bytes()
        if digest_bytes(content) != _read_kept(file.with_suffix(".json"))["report"]:
            raise _damaged(f"{file.name} is damaged: its digest does not match")
        return content.decode()

    def refusal(self, job_id: str) -> Problem:
        """Why the job was refused."""
        return Problem.model_validate(_read_kept(self.path(job_id) / REFUSAL_FILE))


def read_job(folder: Path) -> JobRecord:
    """The job of a folder; `DamagedFileError` if it is damaged."""
    return JobRecord.model_validate(read_checked_json(folder / JOB_FILE))


def write_report_digest(report: Path) -> None:
    """Write the digest of a finished report beside it."""
    write_checked_json(report.with_suffix(".json"), {"report": digest_file(report)})


def _read_kept(file: Path) -> dict[str, Any]:
    try:
        return read_checked_json(file)
    except DamagedFileError as error:
        raise _damaged(f"{file.name} is damaged, or was written by another version") from error
    except OSError as error:
        raise _damaged(f"{file.name} cannot be read ({error.strerror})") from error


def _damaged(problem: str) -> Refusal:
    return Refusal(problem, "what the job wrote", "Delete the job and start it again: finished parts are kept")


def read_progress(folder: Path) -> JobProgress:
    """The progress that the worker wrote last."""
    try:
        return JobProgress.model_validate_json((folder / "progress.json").read_text("utf-8"))
    except (OSError, ValueError):
        return JobProgress()


def _seconds_left(job: JobRecord, fraction: float | None) -> float | None:
    if job.state == "queued":
        return job.estimated_seconds
    if job.state != "running" or job.started is None:
        return None
    elapsed = time() - job.started
    if fraction is not None and MIN_DONE_FRACTION < fraction <= 1:
        return elapsed * (1 - fraction) / fraction
    return None if job.estimated_seconds is None else max(0.0, job.estimated_seconds - elapsed)
