"""A worker computes its job, or says why not; its progress is written now and then, and always at its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertology.errors import Refusal
from bertology.server import worker
from bertology.server.jobs import JobFolder, JobRecord, JobRequest
from bertology.server.worker import EVERYTHING, REFUSED, WRITE_SECONDS, ProgressFile


@pytest.mark.parametrize(
    ("raised", "status", "told"),
    [
        (None, 0, ""),
        (Refusal("No trees", "a treebank", "Give one"), REFUSED, "No trees"),
        (MemoryError(), REFUSED, "The memory is not enough"),
        (ValueError("a mistake"), 1, ""),
    ],
)
def test_a_job_is_computed_or_says_why_not(
    raised: Exception | None, status: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []

    def compute(job: JobRecord, folder: Path, progress: ProgressFile) -> None:
        computed.append(job.id)
        if raised is not None:
            raise raised

    monkeypatch.setattr(worker, "_end_with_parent", lambda: None)
    monkeypatch.setattr(worker.os, "nice", int)
    monkeypatch.setitem(worker._RUNNERS, "links", compute)  # pyright: ignore[reportPrivateUsage]
    jobs = JobFolder(tmp_path)
    job = jobs.create(JobRequest(kind="links"), {}, tmp_path, None)
    assert worker.run_job(jobs.path(job.id)) == status and computed == [job.id]
    if told:
        assert told in jobs.refusal(job.id).problem
    else:
        assert not (jobs.path(job.id) / "refusal.json").exists()


def test_progress_is_written_now_and_then_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(worker, "monotonic", lambda: now[0])

    def written() -> Any:
        return json.loads((tmp_path / "progress.json").read_text())

    progress = ProgressFile(tmp_path)
    job, step = progress.start(EVERYTHING), progress.start("recording")
    job(1, 10)
    assert (written()["done"], written()["total"]) == (1, 10)
    now[0] += 0.9 * WRITE_SECONDS
    job(2, 10)
    assert written()["done"] == 1, "it was written a moment ago"
    now[0] += 0.2 * WRITE_SECONDS
    step(1, 4)
    assert (written()["done"], written()["step"], written()["step_fraction"]) == (2, "recording", 0.25)
    step(4, 4)
    assert written()["step_fraction"] == 1.0, "the end is always written"
    step(0, 0)
    assert written()["step_fraction"] == 0.0, "a step without work"
