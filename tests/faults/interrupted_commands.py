"""Run in a process of its own by `test_signals`: a command gets each signal at a random moment, then runs to its end.

Commands are forks of this process. It prints as JSON what was told, what was left, and whether the command has made the
same as one that was never interrupted.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.commands import command, last_line, write_inputs
from tests.faults.forked_commands import run_line
from tests.forks import run_together, start

from bertology.atomic_files import digest_file

LIMITS = {"record": 6000, "claims": 200, "report": 200, "atlas": 100, "finetune": 0}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
MAX_SECONDS = 0.2
"""A signal is sent so long after the first file is written, at most; earlier if the command had ended by then."""


def made(folder: Path) -> dict[str, str]:
    """What a finished command has made: its page, or what it printed, its shards, and its model."""
    kept = folder / "kept"
    files = [*folder.glob("*.html"), *kept.rglob("*.safetensors")]
    printed = (folder / "out").read_text().replace(str(folder), "")
    return {str(file.relative_to(folder)): digest_file(file) for file in files} | {"printed": printed}


def command_line(name: str, inputs: Path, folder: Path) -> list[str]:
    """The command, with what it keeps in a folder of its own."""
    return command(name, inputs, folder / "kept", folder, limit=LIMITS[name])


def run_again(name: str, inputs: Path, folder: Path) -> int:
    """The status of a command that is not interrupted."""
    return run_together([partial(run_line, command_line(name, inputs, folder), folder)])[0]


def kept_files(folder: Path) -> set[tuple[Path, int]]:
    """What a command keeps, with the times; without the token of an engine, which is written before its work."""
    files: set[tuple[Path, int]] = set()
    for file in (folder / "kept").rglob("*.*"):
        with suppress(FileNotFoundError):  # half-written files are renamed
            files |= {(file, file.stat().st_mtime_ns)} if not file.name.startswith(".engine-") else set()
    return files


def interrupt(name: str, sent: signal.Signals, inputs: Path, folder: Path) -> int:
    """The status of a command that got a signal in the middle of its work; one that had ended by then starts anew."""
    seconds = random.Random().uniform(0, MAX_SECONDS)
    while True:
        before = kept_files(folder)
        process = start(partial(run_line, command_line(name, inputs, folder), folder))
        while kept_files(folder) <= before and not has_ended(process):
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(process, sent)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status or seconds < MAX_SECONDS / 1000:
            return status
        seconds /= 2
        shutil.rmtree(folder)
        (folder / "kept").mkdir(parents=True)


def has_ended(process: int) -> bool:
    """Whether a process has ended, and waits to be asked for its status."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def interrupt_with_all(name: str, root: Path) -> dict[str, Any]:
    """Every signal, one after the other on the same folder; then the command runs to its end.

    SIGKILL is the last: what it leaves half-written stays.
    """
    write_inputs(root)
    alone, interrupted = root / "alone", root / "interrupted"
    for folder in (alone, interrupted):
        (folder / "kept").mkdir(parents=True)
    assert run_again(name, root, alone) == 0, (alone / "err").read_text()
    outcomes: dict[str, Any] = {}
    for sent in SIGNALS:
        status = interrupt(name, sent, root, interrupted)
        told = (interrupted / "err").read_text()
        outcomes[sent.name] = {
            "status": status,
            "told": last_line(told),
            "traceback": "Traceback" in told,
            "half-written files": len(list((interrupted / "kept").rglob("*.partial"))),
        }
    return outcomes | {"resumed": run_again(name, root, interrupted), "same": made(interrupted) == made(alone)}


def print_outcomes(name: str, root: Path) -> None:
    """Interrupt a command, and print what came of it."""
    print(json.dumps(interrupt_with_all(name, root)))
