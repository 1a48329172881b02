"""`analyses.course`: the share that is done foretells the rest, and each part is told how long it took."""

from __future__ import annotations

import pytest

from bertology.analyses import course as module
from bertology.analyses import registry
from bertology.analyses.course import EFFORTS, MOST, Course, Effort, expected
from bertology.cli.progress import time_left


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "perf_counter", made)
    return made


def test_a_part_within_a_part_has_its_time_for_itself(clock: Clock) -> None:
    course = Course(to_do=10.0)
    with course.part("analysis", 6.0):
        clock.now += 1
        with course.part("pass", 4.0):
            clock.now += 20
        clock.now += 2
    assert course.seconds == {"analysis": 3.0, "pass": 20.0}
    assert (course.done, course.to_do) == (10.0, 0.0)


def test_what_was_there_from_before_neither_takes_time_nor_foretells_any(clock: Clock) -> None:
    told: list[tuple[int, int]] = []
    course = Course(lambda done, total: told.append((done, total)), 30.0)
    with course.stage(20.0):
        with course.part("recorded before", 15.0) as move:
            move(0, 0)
        assert told[-1] == (0, 15_000)
        with course.part("pass", 2.0) as move:
            clock.now += 4
            move(1, 2)
            assert told[-1] == (1000, 15_000)
    assert told[-1] == (2000, 12_000), "three seconds of the stage turned out to be no work"
    assert course.seconds == {"pass": 4.0}


def test_effort_stops_growing_where_samples_are_drawn() -> None:
    effort = Effort(1.0, word=0.1, sampled=1.0)
    assert effort.on(10) == 1.0 + 1.0 + 10.0
    assert effort.on(MOST + 100) == pytest.approx(1.0 + 0.1 * (MOST + 100) + MOST)


def test_every_analysis_that_is_weighed_exists() -> None:
    for name in EFFORTS:
        assert registry.get(name).name == name
    assert expected("attention/entropy", 10**6) < 1


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "told"),
    [
        (10.0, 0, 100, ""),
        (10.0, 1, 100, ""),
        (10.0, 50, 100, "about 10 s left"),
        (600.0, 25, 100, "about 30 min left"),
        (10.0, 100, 100, ""),
        (10.0, 0, 0, ""),
    ],
)
def test_what_is_left_is_told_in_words(elapsed: float, done: int, total: int, told: str) -> None:
    assert time_left(elapsed, done, total) == told
