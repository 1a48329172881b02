"""A recording that is killed and resumed is the recording that was never killed; two at once do no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.recording.interruptions import CORPUS, POLICY, SITES
from tests.recording.material import assert_same_recording, tiny

from bertology.recording.opening import open_recording
from bertology.recording.recorder import record

ROOT = Path(__file__).parents[2]


Seen = tuple[dict[str, Any], Path]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("interrupted")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.recording.interruptions", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), folder


@pytest.mark.slow
def test_killed_twenty_times_and_resumed(seen: Seen) -> None:
    found, folder = seen[0]["interrupted"], seen[1]
    assert found["shards"] > 10
    assert found["landed"] > 10, "most kills must hit a process at work"
    assert found["status"] == 0
    assert found["repeated"] == 0, "no forward pass for a finished shard"
    assert found["changed"] == 0, "no finished shard written again"
    assert found["same"], "the same files, to the bit, as without interruption"
    assert not list((folder / "killed").glob("*/.*.partial"))
    assert_same_recording(open_recording(folder / "killed"), open_recording(folder / "whole"))


@pytest.mark.slow
def test_two_processes_at_once_do_no_harm(seen: Seen) -> None:
    found, folder = seen[0]["together"], seen[1]
    assert found["status"] == [0, 0]
    assert_same_recording(open_recording(folder / "both"), record(tiny(), CORPUS, SITES, policy=POLICY), tolerance=1e-5)
