"""Run functions in processes of their own from the same moment on, and wait for their exit statuses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

START_SECONDS = 0.02
"""All processes wait for the same moment, so long after the first was started."""
REFUSED = 2


def run_together(actions: Sequence[Callable[[], int]]) -> list[int]:
    """The exit status of each action: what it returns, or 1 if it raises, which is then printed on stderr.

    Processes are forks of this one, so that what it has imported is imported once.
    """
    moment = time.monotonic() + START_SECONDS
    children = [start(action, moment) for action in actions]
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def start(action: Callable[[], int], moment: float = 0.0) -> int:
    """The id of a process that runs an action from a moment on."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        while time.monotonic() < moment:
            pass
        status = action()
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        os._exit(status)
