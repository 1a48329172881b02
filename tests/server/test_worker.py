"""The progress of a job is written now and then, and always at its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertology.server import worker
from bertology.server.worker import EVERYTHING, WRITE_SECONDS, ProgressFile


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
