"""Run functions in processes of their own from the same moment on, and wait for their exit statuses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import torch

START_SECONDS = 0.02
"""All processes wait for the same moment, so long after the first was started."""
REFUSED = 2


def renew_thread_pool_in_forks() -> None:
    """Let every fork of this process renew torch's thread pool at once, while it has a single thread.

    The threads of the pool do not exist in a fork, so that torch renews it when it is first used. If several threads
    use it first, as those by which transformers loads weights do, one of them may find none ("Invalid thread pool!").
    """
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(torch.get_num_threads()))


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
