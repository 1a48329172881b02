"""A sweep of trainings is estimated from its first run, and refused if the others would take too long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.finetuning_sweep import cached_runs
from bertology.errors import CostError
from bertology.progress import ProgressCallback

SECONDS = 0.06
calls: list[int] = []


def train_once(number: int, progress: ProgressCallback) -> int:
    """A training that takes a moment."""
    calls.append(number)
    time.sleep(SECONDS)
    return number


def test_the_first_run_tells_how_long_all_take_and_is_kept(tmp_path: Path) -> None:
    calls.clear()
    arguments = [{"number": number} for number in range(10_000)]
    bound = AnalysisCache(tmp_path, max_hours=0.05)
    for expected in ([0], [0, 1]):
        with pytest.raises(CostError, match=r"Training \d+ times more takes about"):
            cached_runs(bound, "Training", train_once, arguments)
        assert calls == expected, "the run before was kept"
    assert cached_runs(AnalysisCache(tmp_path, max_hours=1.0), "Training", train_once, arguments[:4]) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]
    assert cached_runs(AnalysisCache(tmp_path), "Training", train_once, arguments[:2]) == [0, 1]
