"""Eight processes on one store at the same moment: each ends well, with what it would have written alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.commands import ENVIRONMENT, ROOT

PROGRAM = [sys.executable, "-m", "tests.faults.sharing_processes"]


@pytest.mark.slow
def test_eight_processes_share_a_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, str(tmp_path)], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "statuses": [0] * 8,
        "other": [],
        "tracebacks": 0,
        "damaged": 0,
        "unfinished files": 0,
        "same recording": True,
    }, done.stderr
