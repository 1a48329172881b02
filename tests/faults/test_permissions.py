"""Files and folders that this user may not read or write: one paragraph that says which, and no verdict.

The permissions are real. A superuser may read and write everything, so the commands run without that right.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.commands import last_line, write_inputs

import bertology

ROOT = Path(__file__).parents[2]
PATHS = [str(ROOT / folder) for folder in ("src", "tests", "")]
PROGRAM = """
import json, sys
from dataclasses import asdict
from command import bertology
print(json.dumps([asdict(bertology(*line)) for line in json.loads(sys.argv[1])]))
"""
IS_ROOT = os.geteuid() == 0
WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if IS_ROOT else []


@pytest.mark.slow
@pytest.mark.skipif(IS_ROOT and shutil.which("setpriv") is None, reason="setpriv, which takes rights, is not installed")
def test_what_may_not_be_read_or_written_is_named(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    recording, locked, corpus = tmp_path / "recording", tmp_path / "locked", tmp_path / "secret.txt"
    bertology.record("tiny", ["A text."], ["attention"], folder=recording)
    locked.mkdir()
    corpus.write_text("A text.\n")
    judged = ["tiny", "--limit", "3", "--claims", str(tmp_path / "claims.toml"), "--max-unknown-tokens", "1"]
    train = str(tmp_path / "train.tsv")
    refused = {
        "Cannot write to": [
            ["record", "tiny", "english", "--limit", "3", "--sites", "hidden", "-o", str(locked / "r")],
            ["claims", *judged, "--store", str(locked / "store")],
            ["report", *judged, "--store", str(locked / "store"), "-o", str(tmp_path / "report.html")],
            ["finetune", "tiny", train, "--task", "sentence", "--epochs", "1", "-o", str(locked / "m")],
        ],
        "No permission to read": [["run", "attention/entropy", "--recording", str(recording)]],
        "cannot be read": [
            ["run", "attention/entropy", "--model", "tiny", "--corpus", str(corpus)],
            ["run", "attention/entropy", "--model", str(tmp_path / "model")],
        ],
    }
    lines = [line for of_problem in refused.values() for line in of_problem]
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    for path in (recording / "manifest.json", corpus, model / "config.json"):
        path.chmod(0)
    locked.chmod(0o500)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    try:
        done = subprocess.run(
            [*WITHOUT_RIGHTS, sys.executable, "-c", PROGRAM, json.dumps(lines)],
            env=environment, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    finally:
        locked.chmod(0o700)
    assert done.returncode == 0, done.stderr
    problems = [problem for problem, of_problem in refused.items() for _ in of_problem]
    for problem, line, outcome in zip(problems, lines, json.loads(done.stdout.splitlines()[-1]), strict=True):
        told = last_line(outcome["err"])
        assert problem in told and "Traceback" not in outcome["err"], (line, outcome)
        assert outcome["status"] == (1 if problem == "Cannot write to" else 2), (line, outcome)
        assert not outcome["out"], "nothing is said to hold, fail or not to apply"
    assert not list(locked.iterdir()) and not (tmp_path / "report.html").exists()
