"""Two processes that record into one folder at the same moment: the same recording is shared, another is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.recording.colliding_writers import N_RUNS, print_outcomes

from bertology.recording.manifest import open_recording
from warm_processes import BERTOLOGY, WarmProcess, start_command


@pytest.mark.slow
def test_of_two_different_recordings_one_is_refused_and_two_equal_ones_share(tmp_path: Path) -> None:
    done = WarmProcess(print_outcomes, tmp_path).wait()
    assert done.status == 0, done.err
    outcomes = json.loads(done.out)
    assert outcomes["other"] == outcomes["saved"] == {"[0, 2] right": N_RUNS}, done.err
    assert outcomes["same"] == {"[0, 0] right": N_RUNS}, done.err


@pytest.mark.slow
def test_of_two_commands_one_is_refused_in_one_paragraph(tmp_path: Path) -> None:
    models = ("tiny", "random:tiny@1")
    commands = [
        [*BERTOLOGY, "record", model, "english", "--limit", "20", "--sites", "attention,hidden",
         "-o", str(tmp_path / "both")]
        for model in models
    ]  # fmt: skip
    ended = [process.wait() for process in [start_command(command) for command in commands]]
    statuses, errors = [each.status for each in ended], [each.err for each in ended]
    assert sorted(statuses) == [0, 2], errors
    assert open_recording(tmp_path / "both").encoder.name == models[statuses.index(0)]
    refusal = errors[statuses.index(2)].strip().splitlines()
    assert "holds a recording of" in refusal[-1] and "Traceback" not in errors[statuses.index(2)]
