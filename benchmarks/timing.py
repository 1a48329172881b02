"""Time ways of doing one thing beside each other, so that a busy machine disturbs all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NAME_WIDTH = 55

Run = Callable[[], object]


@dataclass(frozen=True)
class Time:
    """What one run took: seconds by the clock, and seconds of processor of all threads."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios to the limit, by the clock and by the processor, and the lowest and highest."""

    wall: float
    cpu: float
    low: float
    high: float
    pairs: int
    seconds: float


def measured(run: Run) -> Time:
    """What one run takes; what it returns is let go after the clock has stopped."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    taken = Time(time.perf_counter() - wall, time.process_time() - cpu)
    del result
    return taken


def interleaved(limit: Run, ways: Mapping[str, Run], rounds: int) -> tuple[dict[str, Ratio], float]:
    """Each way's ratio, and the seconds of the limit; a round runs all of them, the next in the other direction."""
    order: list[tuple[str, Run]] = [("", limit), *ways.items()]
    times: dict[str, list[Time]] = {name: [] for name, _ in order}
    for number in range(rounds):
        for name, way in order if number % 2 == 0 else reversed(order):
            times[name].append(measured(way))
    seconds = statistics.median(taken.wall for taken in times[""])
    return {name: _ratio(times[name], times[""]) for name in ways}, seconds


def paired(limit: Run, way: Run, pairs: int) -> Ratio:
    """A way's ratio from so many runs right after the limit."""
    taken = [(measured(limit), measured(way)) for _ in range(pairs)]
    return _ratio([own for _, own in taken], [bare for bare, _ in taken])


def _ratio(own: Sequence[Time], bare: Sequence[Time]) -> Ratio:
    pairs = list(zip(own, bare, strict=True))
    cpu = [a.cpu / b.cpu for a, b in pairs]
    return Ratio(
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(cpu),
        min(cpu),
        max(cpu),
        len(pairs),
        statistics.median(a.wall for a in own),
    )


def print_header() -> None:
    """The head of a table of ratios."""
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x limit':>9}{'x limit':>9}  lowest to highest")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}  of the pairs (cpu)")


def print_row(name: str, ratio: Ratio) -> None:
    """One row of a table of ratios."""
    spread = f"{ratio.low:.2f} to {ratio.high:.2f} of {ratio.pairs}"
    print(f"{name:<{NAME_WIDTH}}{ratio.seconds:>9.2f}{ratio.wall:>9.2f}{ratio.cpu:>9.2f}  {spread}", flush=True)
