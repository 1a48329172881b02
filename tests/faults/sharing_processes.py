"""Run in a process of its own by `test_processes`: eight commands on one store at once, as forks of one process."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.faults.commands import command, write_inputs
from tests.faults.forked_commands import run_line
from tests.forks import run_together

from bertology.recording.manifest import open_recording

MIX = ("record", "claims", "report", "record", "claims", "report", "claims", "report")


def run_command(name: str, root: Path, kept: str, output: Path) -> int:
    """Run a command in this process, with what it prints in files; its exit status."""
    return run_line(command(name, root, root / kept, output), output)


def _written(name: str, output: Path) -> bytes:
    """The page of a command, or what it printed, without the folder that it was given."""
    page = output / f"{name}.html"
    return page.read_bytes() if page.exists() else (output / "out").read_bytes().replace(b"/alone/", b"/shared/")


def _is_same_recording(root: Path) -> bool:
    alone, shared = (open_recording(root / kept / "recording") for kept in ("alone", "shared"))
    pairs = (zip(alone[site], shared[site], strict=True) for site in alone.sites)
    return all(one.tobytes() == other.tobytes() for arrays in pairs for one, other in arrays)


def share_store(root: Path) -> dict[str, object]:
    """How the commands ended, and which wrote something else than it does alone."""
    write_inputs(root)
    for name in dict.fromkeys(MIX):
        assert run_together([partial(run_command, name, root, "alone", root / f"alone-{name}")]) == [0], name
    outputs = [root / f"shared-{number}" for number in range(len(MIX))]
    actions: list[Callable[[], int]] = [
        partial(run_command, name, root, "shared", output) for name, output in zip(MIX, outputs, strict=True)
    ]
    statuses = run_together(actions)
    messages = [(output / "err").read_text() for output in outputs]
    pages = zip(MIX, outputs, strict=True)
    return {
        "statuses": statuses,
        "other": [name for name, output in pages if _written(name, output) != _written(name, root / f"alone-{name}")],
        "tracebacks": sum("Traceback" in message for message in messages),
        "damaged": sum("damaged" in message for message in messages),
        "unfinished files": len(list((root / "shared").rglob("*.partial"))),
        "same recording": _is_same_recording(root),
    }


def print_outcomes(root: Path) -> None:
    """Share a store, and print what came of it."""
    print(json.dumps(share_store(root)))
