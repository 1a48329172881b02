"""Functions that the tests give to workers: a worker imports them from here."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any


def describe_call(shared: dict[str, Any], number: int) -> list[Any]:
    """Fails for 3; ends its process for 5, and once for 4; else what it was called with."""
    folder = Path(shared["folder"])
    with (folder / f"tries-{number}").open("a") as stream:
        stream.write("x")
    if number == 3:
        raise ValueError("three is never right")
    if number == 5 or (number == 4 and len((folder / "tries-4").read_text()) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return [number, shared["word"], os.environ["OMP_NUM_THREADS"]]


def return_lock(shared: Any) -> Any:
    """A value that cannot be pickled."""
    return shared, threading.Lock()


def process_after(seconds: float, number: int) -> tuple[int, int]:
    """The number, and the process that has waited so long."""
    time.sleep(seconds)
    return number, os.getpid()


def write_until_full(folder: str, number: int) -> int:
    """The number; from 2 on the disk is full."""
    if number >= 2:
        raise OSError(errno.ENOSPC, "No space left on device", folder)
    return number


class EndsItsProcess:
    """A value whose reader ends its process, as a system without memory does."""

    def __reduce__(self) -> Any:
        return _end_process, ()


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
