"""Two processes that record into one folder at the same moment: the same recording is shared, another is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recording.colliding_writers import N_RUNS

from bertology.recording.manifest import open_recording

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)])}


@pytest.mark.slow
def test_of_two_different_recordings_one_is_refused_and_two_equal_ones_share(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.recording.colliding_writers", str(tmp_path)],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    outcomes = json.loads(done.stdout)
    assert outcomes["other"] == outcomes["saved"] == {"[0, 2] right": N_RUNS}, done.stderr
    assert outcomes["same"] == {"[0, 0] right": N_RUNS}, done.stderr


@pytest.mark.slow
def test_of_two_commands_one_is_refused_in_one_paragraph(tmp_path: Path) -> None:
    models = ("tiny", "random:tiny@1")
    commands = [
        [sys.executable, "-m", "bertology", "record", model, "english", "--limit", "20", "--sites", "attention,hidden",
         "-o", str(tmp_path / "both")]
        for model in models
    ]  # fmt: skip
    processes = [subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) for command in commands]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    statuses = [process.returncode for process in processes]
    assert sorted(statuses) == [0, 2], errors
    assert open_recording(tmp_path / "both").encoder.name == models[statuses.index(0)]
    refusal = errors[statuses.index(2)].strip().splitlines()
    assert "holds a recording of" in refusal[-1] and "Traceback" not in errors[statuses.index(2)]
