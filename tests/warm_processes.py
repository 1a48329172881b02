"""Processes that begin to work at once: forks of a process that has imported what they need.

Importing torch and transformers takes a process four seconds, far longer than most commands under test. These
processes are as real as any other: they are killed, limited and interrupted; only the imports lie behind them. A
process that needs another environment from its first instruction on (threads, a preloaded library) is started in the
ordinary way.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver, reduction
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import IO, Any
from unittest.mock import patch

import pytest

from command import CommandResult

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]),
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "200",
}
BERTOLOGY = [sys.executable, "-m", "bertology"]
SECONDS = 600.0
_CONTEXT = multiprocessing.get_context("forkserver")


class WarmProcess:
    """A process that runs a function; its exit status is what the function returns, if that is a number."""

    def __init__(
        self, action: Callable[..., Any], *arguments: Any, environment: Mapping[str, str] = ENVIRONMENT
    ) -> None:
        # Output is not written into the folder of a test: it may be compared as a whole, and its disk may be full.
        self._output = Path(mkdtemp(prefix="warm-process-"))
        _start_server()
        self._process = _CONTEXT.Process(target=_run, args=(self._output, dict(environment), action, *arguments))
        self._process.start()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._process.kill()

    def wait(self, seconds: float = SECONDS) -> CommandResult:
        """Wait until it ends: its status, negative for a signal, and what it printed."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"still running after {seconds} s: {(self._output / 'err').read_text('utf-8')}")
        out, err = ((self._output / name).read_text("utf-8") for name in ("out", "err"))
        shutil.rmtree(self._output, ignore_errors=True)
        return CommandResult(self._process.exitcode, out, err)


def start_command(line: list[str]) -> WarmProcess:
    """Start a command line, `BERTOLOGY` and its arguments."""
    return WarmProcess(run_main, line)


def run_command(line: list[str]) -> CommandResult:
    """Run a command line, `BERTOLOGY` and its arguments, to its end."""
    return start_command(line).wait()


def run_main(line: list[str]) -> None:
    """Run a command line in this process, which it ends."""
    from bertology.cli.main import main

    sys.argv = ["bertology", *line[len(BERTOLOGY) :]]
    main()


class WarmPopen:
    """What the package uses of `subprocess.Popen`, for the line `python -m MODULE ARGUMENTS`."""

    def __init__(
        self,
        line: list[str],
        *,
        env: Mapping[str, str],
        stdin: int,
        stdout: int | IO[Any],
        stderr: IO[Any] | None = None,
    ) -> None:
        assert line[:2] == [sys.executable, "-m"], line
        _start_server()
        descriptors: dict[int, int] = {}
        self.stdin = self.stdout = None
        if stdin == subprocess.PIPE:
            descriptors[0], write = os.pipe()
            self.stdin = os.fdopen(write, "wb")
        if stdout == subprocess.PIPE:
            read, descriptors[1] = os.pipe()
            self.stdout = os.fdopen(read, "rb")
        for number, stream in ((1, stdout), (2, stderr)):
            if stream is not None and not isinstance(stream, int):
                descriptors[number] = os.dup(stream.fileno())
        inherited = {number: _Inherited(descriptor) for number, descriptor in descriptors.items()}
        self._process = _CONTEXT.Process(target=_run_module, args=(line[2:], dict(env), inherited), daemon=True)
        self._process.start()
        for descriptor in descriptors.values():
            os.close(descriptor)
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.terminate, self.kill = self._process.terminate, self._process.kill

    def poll(self) -> int | None:
        """The exit status, or none while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status when it has ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a warm process", timeout or 0.0)
        return self._process.exitcode


@contextmanager
def warm_workers() -> Generator[None]:
    """Let engines and job queues of this process start warm processes as their workers."""
    warm = SimpleNamespace(**{**vars(subprocess), "Popen": WarmPopen})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertology.engines.local.subprocess", warm)
        patch.setattr("bertology.server.job_queue.subprocess", warm)
        yield


class _Inherited:
    """A file descriptor of this process that is handed to a process it starts, which gets the number there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> Any:
        return _detach, (reduction.DupFd(self._descriptor),)


def _detach(descriptor: Any) -> int:
    return descriptor.detach()


def _run_module(line: list[str], environment: dict[str, str], descriptors: dict[int, int]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, descriptor in descriptors.items():
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv = line
    sys.modules.pop(line[0], None)  # it may be imported already, and is run anew as the main module
    runpy.run_module(line[0], run_name="__main__")


def _start_server() -> None:
    """Start the process whose forks the others are, once."""
    _CONTEXT.set_forkserver_preload(["warm_imports"])
    with patch.dict(os.environ, ENVIRONMENT):  # it imports from the path of its environment
        forkserver.ensure_running()


def _run(output: Path, environment: dict[str, str], action: Callable[..., Any], *arguments: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(output / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND), descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where pytest runs in the background of a shell
    status = action(*arguments)
    if isinstance(status, int):
        sys.exit(status)
