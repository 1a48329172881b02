"""Run the command line in this process and capture its output and exit status."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from bertology.cli.main import main


@dataclass(frozen=True)
class CommandResult:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


def bertology(*arguments: str) -> CommandResult:
    """Run `bertology ARGUMENTS`; an exception other than SystemExit fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.argv", ["bertology", *arguments]):
        try:
            main()
        except SystemExit as stop:
            return CommandResult(int(stop.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("main() returned")
