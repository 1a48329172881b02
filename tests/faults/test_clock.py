"""A clock that was moved back: files lie in the future, and everything kept is found, used and whole.

The clock of a process is moved by libfaketime, where it is installed. Without it, the files are moved: their times are
set a year ahead, which is what a process sees after its clock was moved back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.commands import command, write_inputs

from command import CommandResult, bertology
from warm_processes import BERTOLOGY, ENVIRONMENT

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


def run(lines: list[list[str]], environment: dict[str, str]) -> list[CommandResult]:
    """Run commands to their end, in this process unless they need another clock, and then all in one process."""
    arguments = [line[len(BERTOLOGY) :] for line in lines]
    if "FAKETIME" not in environment:
        return [bertology(*each) for each in arguments]
    program = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=600, check=True)
    return [CommandResult(*each) for each in json.loads(done.stdout)]


def made(name: str, output: Path, done: CommandResult) -> bytes:
    """The page that a command has written, or what it has printed."""
    assert done.status == 0 and "Traceback" not in done.err, done.err
    page = output / f"{name}.html"
    return page.read_bytes() if page.exists() else done.out.encode()


@pytest.mark.slow
@pytest.mark.parametrize("clock", CLOCKS)
def test_what_is_kept_is_used_and_not_deleted_after_the_clock_was_moved_back(clock: str, tmp_path: Path) -> None:
    kept, output = tmp_path / "kept", tmp_path / "output"
    for folder in (kept, output):
        folder.mkdir()
    write_inputs(tmp_path)
    names = ("record", "report", "finetune")
    lines = [command(name, tmp_path, kept, output) for name in names]
    before = [made(name, output, done) for name, done in zip(names, run(lines, dict(ENVIRONMENT)), strict=True)]
    environment = move_clock_back(clock, kept)
    times = {file: file.stat().st_mtime_ns for file in kept.rglob("*") if file.is_file()}
    store = ["--store", str(kept / "store")]
    older, listing = ["store", "prune", "--older-than", "1d", *store], ["store", "list", *store]
    *again, pruned, listed = run([*lines, [*BERTOLOGY, *older], [*BERTOLOGY, *listing]], environment)
    assert [made(name, output, done) for name, done in zip(names, again, strict=True)] == before
    now = {file: file.stat().st_mtime_ns for file in kept.rglob("*") if file.is_file()}
    assert pruned.status == 0 and now == times, "nothing kept was written anew or deleted"
    assert listed.status == 0 and "tiny" in listed.out and " 0s " in listed.out, listed.out


PROGRAM = """
import json, sys
from dataclasses import astuple
from command import bertology
print(json.dumps([astuple(bertology(*arguments)) for arguments in json.loads(sys.argv[1])]))
"""
