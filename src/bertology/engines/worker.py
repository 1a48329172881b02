"""A worker process of the local engine: `python -m bertology.engines.worker`, with tasks on stdin, answers on stdout.

It ends when its driver closes stdin or ends, at the latest after the task it works on.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, NoReturn

from bertology.engines.task_runner import TaskRunner


def _end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _main() -> None:
    """Answer the messages of the driver: `job` with a job, `task` with pickled arguments."""
    # Ctrl-C goes to all processes of a terminal; the driver ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    runner = TaskRunner()

    def send(*message: Any) -> None:
        pickle.dump(message, output)
        output.flush()

    while True:
        try:
            kind, content = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if kind == "job":
                send(*runner.start(content))
            else:
                send(*runner.run(content, lambda done, total: send("progress", (done, total))))
        except BrokenPipeError:  # the driver has ended
            os._exit(1)


if __name__ == "__main__":
    _main()
