"""Commands on a small disk: a tmpfs in a namespace of its own, which ends with the process that made it."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from functools import partial
from pathlib import Path

from tests.faults.forked_commands import run_line
from tests.forks import run_together

from warm_processes import run_main

NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
"""CLONE_NEWNS and CLONE_NEWUSER of Linux."""


def enter_namespace() -> None:
    """Let this process mount what no other process sees, as `unshare --user --map-root-user --mount` does."""
    user, group = os.getuid(), os.getgid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(NEW_USERS | NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot have a namespace of its own")
    own = Path("/proc/self")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "setgroups").write_text("deny")
    (own / "gid_map").write_text(f"0 {group} 1")


def mount(disk: Path, options: str) -> None:
    """Mount a tmpfs, or mount it again with other options."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True)


def run_on_full_disk(disk: Path, limits: str, freed: str, file_bytes: int, log: Path, line: list[str]) -> None:
    """Run a command on a small disk, and again when space was made; output and statuses are in the folder `log`."""
    enter_namespace()
    mount(disk, limits)
    statuses = run_together([partial(_run_limited, file_bytes, line, log / "full")])
    mount(disk, f"remount,{freed}")
    statuses += run_together([partial(run_line, line, log / "freed")])
    for name, status in zip(("full", "freed"), statuses, strict=True):
        (log / name / "status").write_text(str(status))


def _run_limited(file_bytes: int, line: list[str], output: Path) -> int:
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
    return run_line(line, output)


def run_on_read_only_disk(disk: Path, line: list[str]) -> None:
    """Run a command whose disk cannot be written."""
    enter_namespace()
    mount(disk, "ro")
    run_main(line)
