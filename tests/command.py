"""The command line in this process: what it printed, what it said, how it ended."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from bertology.cli.main import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


def bertology(*words: str) -> Ended:
    """Run `bertology WORDS`; anything but a clean exit (a traceback) fails the test by itself."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.argv", ["bertology", *words]):
        try:
            main()
        except SystemExit as stop:
            return Ended(int(stop.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("main() returned")
