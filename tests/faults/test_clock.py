"""A clock that was moved back: files lie in the future, and everything kept is found, used and whole.

The clock of a process is moved by libfaketime, where it is installed. Without it, the files are moved: their times are
set a year ahead, which is what a process sees after its clock was moved back.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.faults.commands import BERTOLOGY, ENVIRONMENT, command, write_inputs

from command import CommandResult, bertology

YEAR = 365 * 86400
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")) if Path("/usr/lib").is_dir() else []
CLOCKS = [
    "files in the future",
    pytest.param("faketime", marks=pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")),
]


def move_clock_back(clock: str, kept: Path) -> dict[str, str]:
    """The environment of a command after the clock was moved back by a year."""
    if clock == "faketime":
        return ENVIRONMENT | {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": "-365d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    for path in [kept, *kept.rglob("*")]:
        os.utime(path, (time.time() + YEAR, time.time() + YEAR))
    return dict(ENVIRONMENT)


def run(line: list[str], environment: dict[str, str]) -> CommandResult:
    """Run a command, in this process unless it needs another clock."""
    if "FAKETIME" not in environment:
        return bertology(*line[len(BERTOLOGY) :])
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ["record", "report", "finetune"])
def test_what_is_kept_is_used_after_the_clock_was_moved_back(name: str, clock: str, tmp_path: Path) -> None:
    kept, output = tmp_path / "kept", tmp_path / "output"
    for folder in (kept, output):
        folder.mkdir()
    write_inputs(tmp_path)
    line = command(name, tmp_path, kept, output)
    first = run(line, dict(ENVIRONMENT))
    assert first.status == 0, first.err
    page = output / f"{name}.html"
    before = page.read_bytes() if page.exists() else first.out.encode()
    environment = move_clock_back(clock, kept)
    times = {file: file.stat().st_mtime_ns for file in kept.rglob("*") if file.is_file()}
    again = run(line, environment)
    assert again.status == 0 and "Traceback" not in again.err, again.err
    assert (page.read_bytes() if page.exists() else again.out.encode()) == before
    assert {file: file.stat().st_mtime_ns for file in times} == times, "nothing kept was written anew"


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_nothing_from_the_future_is_old_enough_to_be_deleted(clock: str, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    store = tmp_path / "kept" / "store"
    store.mkdir(parents=True)
    done = run(command("claims", tmp_path, tmp_path / "kept", tmp_path), dict(ENVIRONMENT))
    assert done.status == 0, done.err
    environment = move_clock_back(clock, store)
    files = sorted(store.rglob("*"))
    pruned = run([*BERTOLOGY, "store", "prune", "--older-than", "1d", "--store", str(store)], environment)
    assert pruned.status == 0 and sorted(store.rglob("*")) == files, pruned.err
    listed = run([*BERTOLOGY, "store", "list", "--store", str(store)], environment)
    assert listed.status == 0 and "tiny" in listed.out and " 0s " in listed.out, listed.out
