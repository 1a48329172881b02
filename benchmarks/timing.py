"""Time several methods in alternation, so that other load on the machine affects all of them equally."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NAME_WIDTH = 55

Run = Callable[[], object]


@dataclass(frozen=True)
class Time:
    """Wall-clock seconds and processor seconds (all threads) of one run."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Ratio:
    """Median ratio to the limit over pairs of runs, by wall-clock and processor time, with the range of the latter."""

    wall: float
    cpu: float
    low: float
    high: float
    pairs: int
    seconds: float


def measure_time(run: Run) -> Time:
    """The time of one run; its result is freed after the clock has stopped."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    elapsed = Time(time.perf_counter() - wall, time.process_time() - cpu)
    del result
    return elapsed


def interleave(limit: Run, methods: Mapping[str, Run], rounds: int) -> tuple[dict[str, Ratio], float]:
    """The ratio of each method and the seconds of the limit; every second round runs in reverse order."""
    order: list[tuple[str, Run]] = [("", limit), *methods.items()]
    times: dict[str, list[Time]] = {name: [] for name, _ in order}
    for number in range(rounds):
        for name, method in order if number % 2 == 0 else reversed(order):
            times[name].append(measure_time(method))
    seconds = statistics.median(elapsed.wall for elapsed in times[""])
    return {name: _ratio(times[name], times[""]) for name in methods}, seconds


def time_pairs(limit: Run, method: Run, pairs: int) -> Ratio:
    """The ratio of a method from runs that each follow a run of the limit."""
    elapsed = [(measure_time(limit), measure_time(method)) for _ in range(pairs)]
    return _ratio([method_times for _, method_times in elapsed], [limit_times for limit_times, _ in elapsed])


def _ratio(method_times: Sequence[Time], limit_times: Sequence[Time]) -> Ratio:
    pairs = list(zip(method_times, limit_times, strict=True))
    cpu = [a.cpu / b.cpu for a, b in pairs]
    return Ratio(
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(cpu),
        min(cpu),
        max(cpu),
        len(pairs),
        statistics.median(a.wall for a in method_times),
    )


def print_header() -> None:
    """Print the header of a table of ratios."""
    print(f"{'':<{NAME_WIDTH}}{'seconds':>9}{'x limit':>9}{'x limit':>9}  lowest to highest")
    print(f"{'':<{NAME_WIDTH}}{'':>9}{'(clock)':>9}{'(cpu)':>9}  of the pairs (cpu)")


def print_row(name: str, ratio: Ratio) -> None:
    """Print one row of a table of ratios."""
    spread = f"{ratio.low:.2f} to {ratio.high:.2f} of {ratio.pairs}"
    print(f"{name:<{NAME_WIDTH}}{ratio.seconds:>9.2f}{ratio.wall:>9.2f}{ratio.cpu:>9.2f}  {spread}", flush=True)
