from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertology.server.job_queue import JobQueue
from bertology.server.jobs import JobFolder, JobProgress, JobRequest
from serving import wait_for

WRITER = """
import sys
from itertools import count
from pathlib import Path
from bertology.checked_files import write_checked_json
from bertology.server.jobs import JobFolder

folder = JobFolder(Path(sys.argv[1]))
(job,) = folder.jobs()
for number in count():
    write_checked_json(folder.path(job.id) / "result.json", {"values": [number] * 200_000})
    folder.write(job.model_copy(update={"restarts": number, "state": "done"}))
"""
N_KILLS = 8


def test_what_is_left_of_a_job_is_estimated_from_what_is_done(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    job = folder.create(JobRequest(kind="links"), {}, tmp_path, estimate=200.0)
    waiting = folder.answer(job)
    assert (waiting.seconds_left, waiting.fraction, waiting.step, waiting.step_fraction) == (200.0, None, "", 0.0)
    running = job.model_copy(update={"state": "running", "started": time.time() - 30})
    assert folder.answer(running).seconds_left == pytest.approx(170, abs=5), "nothing is done yet"
    (folder.path(job.id) / "progress.json").write_text(
        JobProgress(done=1, total=4, step="a", step_fraction=0.5).model_dump_json()
    )
    answer = folder.answer(running)
    assert answer.fraction == 0.25 and answer.seconds_left == pytest.approx(90, abs=15)
    assert (answer.step, answer.step_fraction) == ("a", 0.5)
    done = folder.answer(running.model_copy(update={"state": "done"}))
    assert (done.seconds_left, done.fraction, done.step, done.step_fraction) == (None, 1.0, "", 0.0)


def test_killed_in_the_middle_of_a_write_a_job_and_its_result_are_whole(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path / "w", tmp_path)
    job = queue.submit(JobRequest(kind="links", model="tiny", corpus="english"), {})
    folder = queue.files.folder
    queue.close()
    result = folder / job.id / "result.json"
    for kill in range(N_KILLS):
        result.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)])
        try:
            wait_for(result.exists)
            time.sleep(0.011 * kill)  # at another moment of the write each time
        finally:
            writer.kill()
            writer.wait(30)
        values = json.loads(result.read_text("utf-8"))["values"]
        assert len(values) == 200_000 and len(set(values)) == 1
        again = JobQueue(tmp_path / "w", tmp_path)
        assert [each.id for each in again.answers()] == [job.id]
        assert json.loads(again.files.result_text(job.id)) == {"values": values}
        again.close()
