"""`ProgressEstimate`: progress that predicts the rest, and the elapsed time of each part."""

from __future__ import annotations

import pytest

from bertology.analyses import progress_estimate as module
from bertology.analyses.progress_estimate import ProgressEstimate


class Clock:
    """A clock that is advanced by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    return clock


def test_time_in_a_nested_step_counts_for_that_step_only(clock: Clock) -> None:
    progress = ProgressEstimate(remaining=10.0)
    with progress.step("analysis", 6.0):
        clock.now += 1
        with progress.step("pass", 4.0):
            clock.now += 20
        clock.now += 2
    assert progress.elapsed == {"analysis": 3.0, "pass": 20.0}
    assert (progress.completed, progress.remaining) == (10.0, 0.0)


def test_cached_steps_are_removed_from_the_estimate(clock: Clock) -> None:
    reported: list[tuple[int, int]] = []
    progress = ProgressEstimate(lambda done, total: reported.append((done, total)), 30.0)
    with progress.stage(20.0):
        with progress.step("recorded before", 15.0) as update:
            update(0, 0)
        assert reported[-1] == (0, 15_000)
        with progress.step("pass", 2.0) as update:
            clock.now += 4
            update(1, 2)
            assert reported[-1] == (1000, 15_000)
    assert reported[-1] == (2000, 12_000), "three seconds of the stage were not needed"
    assert progress.elapsed == {"pass": 4.0}
