"""A run that is killed at any moment and started again ends with the weights of one that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    program = Path(__file__).with_name("killed.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["status"] == 0, done.stderr
    assert found["killed"] >= 4, found
    assert found["same_log"], found
    assert found["same"], found
    assert set(found["left"]) == {"config.json", "finetuning.json", "model.safetensors", "tokenizer.json",
                                  "tokenizer_config.json"}  # fmt: skip
