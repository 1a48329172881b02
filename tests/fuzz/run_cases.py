"""Run cases in this process: each is refused, accepted, a traceback or a hang; failures are kept and replayed."""

from __future__ import annotations

import base64
import hashlib
import json
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Literal

from bertology.errors import Refusal
from fuzz.kind import Files, Kind, write_files

FAILURES = Path(__file__).parent / "failures"
MAX_KEPT = 20
"""Failures of one kind that are written in one run; they have different tracebacks."""
MAX_FAILURE_BYTES = 200_000
MAX_PARAGRAPH = 12_000

Outcome = Literal["refused", "accepted", "traceback", "hang"]


class HangError(BaseException):
    """A case took too long; no exception handler of the package catches it."""


@dataclass
class Tally:
    """How the cases of one kind ended."""

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter[str])
    problems: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """All cases."""
        return sum(self.outcomes.values())

    @property
    def peak_megabytes(self) -> float:
        """The most memory that this process has had."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_kind(kind: Kind, *, seed: int, seconds: float = float("inf"), cases: int = sys.maxsize) -> Tally:
    """Run cases until the time or their number is reached."""
    tally = Tally(kind.name)
    start = time.monotonic()
    number = 0
    while number < cases and time.monotonic() - start < seconds:
        rng = Random(f"{kind.name} {seed} {number}")
        files = kind.make(rng)
        outcome, problem = run_case(kind, files)
        tally.outcomes[outcome] += 1
        place = problem.rpartition(": ")[0]
        if problem and place not in tally.problems:
            tally.problems[place] = f"{problem} (seed {seed}, case {number})"
            if len(tally.problems) <= MAX_KEPT:
                keep_failure(kind.name, files, problem)
        number += 1
    tally.seconds = time.monotonic() - start
    return tally


def run_case(kind: Kind, files: Files) -> tuple[Outcome, str]:
    """The outcome of one case, and the end of its traceback or where it hung."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        write_files(folder, files)
        with warnings.catch_warnings(), _time_limit(kind.seconds_per_case):
            warnings.simplefilter("ignore")
            kind.consume(folder)
    except Refusal as refusal:
        paragraph = str(refusal)
        if "\n" in paragraph or len(paragraph) > MAX_PARAGRAPH:
            return "traceback", f"a refusal of {len(paragraph)} characters that is no paragraph: {paragraph[:200]!r}"
        return "refused", ""
    except HangError:
        return "hang", _where()
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of a library is no Exception
        return "traceback", _where()
    else:
        return "accepted", ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_failure(kind: str, files: Files, problem: str) -> None:
    """Write a failing case into the corpus of failures, which the tests replay."""
    if sum(map(len, files.values())) > MAX_FAILURE_BYTES:
        return
    content = {
        "problem": problem.splitlines()[-1].partition(":")[0],
        "files": {name: base64.b64encode(value).decode() for name, value in files.items()},
    }
    name = hashlib.sha256(problem.rpartition(": ")[0].encode()).hexdigest()[:12]
    target = FAILURES / kind.replace(" ", "-") / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def read_failure(file: Path) -> Files:
    """The files of a kept failure."""
    content = json.loads(file.read_text("utf-8"))
    return {name: base64.b64decode(value) for name, value in content["files"].items()}


@contextmanager
def _time_limit(seconds: float) -> Generator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    # Time of the processor, so that a busy machine is no hang; and time of the clock, for what waits for ever.
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 12 * seconds)}
    previous = {number: signal.signal(number, stop) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit, 1.0)  # again, in case that the first was caught
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, previous[number])


def _where() -> str:
    """The innermost lines of this package in the traceback, and the exception."""
    kind, error, trace = sys.exc_info()
    own = [frame for frame in traceback.extract_tb(trace) if "bertology" in frame.filename]
    lines = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in own[-4:]]
    message = " ".join(str(error).split()).replace(": ", " ")[:160]
    return "\n".join([*lines, f"{kind.__name__ if kind else ''}: {message}"])
