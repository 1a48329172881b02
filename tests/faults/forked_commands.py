"""Commands in forks of a process that has imported everything, so that each starts at once."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from warm_processes import run_main


def run_line(line: list[str], output: Path) -> int:
    """Run a command line in this process, with what it prints in files of a folder; its exit status."""
    output.mkdir(exist_ok=True)
    for descriptor, file in ((1, "out"), (2, "err")):
        os.dup2(os.open(output / file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), descriptor)
    try:
        run_main(line)
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        traceback.print_exc()  # as a process of its own would
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 1
