"""A killed and resumed recording equals an uninterrupted one; two processes can record into one folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.recording.interruptions import CONFIG, CORPUS, SITES
from tests.recording.material import assert_same_recording, tiny

from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record

ROOT = Path(__file__).parents[2]

Observations = tuple[dict[str, Any], Path]


@pytest.fixture(scope="module")
def observations(tmp_path_factory: pytest.TempPathFactory) -> Observations:
    folder = tmp_path_factory.mktemp("interrupted")
    done = subprocess.run(
        [sys.executable, "-m", "tests.recording.interruptions", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder


@pytest.mark.slow
def test_a_recording_killed_twenty_times_resumes(observations: Observations) -> None:
    observed, folder = observations[0]["killed"], observations[1]
    assert observed["shards"] > 10
    assert observed["killed"] > 10, "most kills must hit a process at work"
    assert observed["finished_before_the_end"] > 0, "some shards were finished before a kill"
    assert observed["status"] == 0
    assert observed["repeated"] == 0, "no forward pass for a finished shard"
    assert observed["changed"] == 0, "no finished shard written again"
    assert observed["same"], "the same files, to the bit, as without interruption"
    assert not list((folder / "killed").glob("*/.*.partial"))
    assert_same_recording(open_recording(folder / "killed"), open_recording(folder / "uninterrupted"))


@pytest.mark.slow
def test_two_processes_can_record_at_once(observations: Observations) -> None:
    observed, folder = observations[0]["at_once"], observations[1]
    assert observed["status"] == [0, 0]
    expected = record(tiny(), CORPUS, SITES, config=CONFIG)
    assert_same_recording(open_recording(folder / "both"), expected, tolerance=1e-5)
