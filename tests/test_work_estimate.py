"""Work is told before it starts, and refused above a bound; the numbers are told in readable units."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bertology.errors import CostError
from bertology.work_estimate import WorkEstimate, check_work, format_bytes, format_duration

HOUR = 3600.0


def test_work_of_more_than_a_minute_is_told_and_less_is_not() -> None:
    told: list[str] = []
    check_work("Recording", WorkEstimate(59.0), 12.0, notify=told.append)
    assert told == []
    check_work("Recording", WorkEstimate(61.0, 3e9), 12.0, folder=Path.cwd(), notify=told.append)
    assert told == ["Recording takes about 61 seconds on this machine, and 3.0 GB to keep."]


def test_work_above_the_bound_is_refused_with_the_option_that_allows_it() -> None:
    check_work("Recording", WorkEstimate(11.9 * HOUR), 12.0)
    with pytest.raises(CostError) as refused:
        check_work("Recording", WorkEstimate(100 * HOUR), 12.0)
    assert refused.value.problem == "Recording takes about 4.2 days on this machine"
    assert refused.value.expected == "at most 12 hours"
    assert "--max-hours 150" in refused.value.remedy and "max_hours=150" in refused.value.remedy
    check_work("Recording", WorkEstimate(100 * HOUR), 150.0)


def test_more_bytes_than_are_free_are_refused_whatever_the_hours(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    missing = tmp_path / "not" / "there" / "yet"
    check_work("Recording", WorkEstimate(1.0, 0.5 * free), 12.0, folder=missing)
    with pytest.raises(CostError, match=r"the disk of .* has") as refused:
        check_work("Recording", WorkEstimate(1.0, 2 * free), 1e6, folder=missing)
    assert "--float16" in refused.value.remedy and "larger disk" in refused.value.remedy
    with pytest.raises(CostError, match="that memory has"):
        check_work("Recording", WorkEstimate(1.0, 1e18), 12.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3 seconds"), (100, "2 minutes"), (4000, "67 minutes"), (9000, "2.5 hours"), (3.6e6, "42 days")],
)
def test_durations_are_told_in_their_largest_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(12, "12 bytes"), (2_500, "2.5 kB"), (77e9, "77 GB"), (1.5e12, "1.5 TB")]
)
def test_bytes_are_told_in_their_unit(n_bytes: float, text: str) -> None:
    assert format_bytes(n_bytes) == text
