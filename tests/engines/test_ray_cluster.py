"""A Ray cluster of three nodes on this machine: a worker, a node and the driver of a recording are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = ROOT / "benchmarks" / "engine_faults.py"


@pytest.mark.slow
def test_a_recording_survives_a_killed_worker_node_and_driver(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(FAULTS), "--times", "1"],
        env=environment, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [row["fault"] for row in rows] == ["worker", "node", "driver"], done.stderr[-2000:]
    assert all(row["status"] == 0 and row["same bytes"] for row in rows), rows
