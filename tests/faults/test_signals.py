"""SIGTERM in the middle of a command: it ends with a sentence and status 143, and the same command goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.faults.commands import COMMANDS, ENVIRONMENT, command, last_line, write_inputs

SECONDS = 300
LIMITS = {"record": 6000, "claims": 200, "report": 200, "atlas": 200, "finetune": 0}


def is_at_work(kept: Path) -> bool:
    """Whether the command has written the first of what it keeps."""
    return any(file.is_file() for file in kept.rglob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminated_command_says_so_and_goes_on(name: str, tmp_path: Path) -> None:
    rng, kept = random.Random(), tmp_path / "kept"
    kept.mkdir()
    write_inputs(tmp_path)
    line = command(name, tmp_path, kept, tmp_path, limit=LIMITS[name])
    process = subprocess.Popen(line, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    start = time.monotonic()
    while not is_at_work(kept) and process.poll() is None and time.monotonic() - start < SECONDS:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.2))
    process.send_signal(signal.SIGTERM)
    terminated = time.monotonic()
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM, told
    assert time.monotonic() - terminated < SECONDS / 5, "it does not wait until the work is done"
    assert last_line(told) == "bertology: terminated; finished parts are kept, and the same command resumes", told
    assert "Traceback" not in told
    assert not list(kept.rglob("*.partial")), "half-written files are removed"
    again = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert again.returncode == 0, again.stderr
