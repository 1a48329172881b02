"""Curves that are made by hand meet where they were made to, and data are worth what they were made to be worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted_features as planted
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.meaning.data_sizes import LearningCurves, Meetings
from bertology.measures.meaning.lessons import Choice, lesson_of
from bertology.results.shapes import Table

SIZES = (10, 100, 1000)


def made(*curves: tuple[float, ...], items: int = 1000, seeds: int = 2) -> Meetings:
    """Every seed gets these shares of the items right; each curve others of them."""
    generator = np.random.default_rng(0)
    ranks = np.stack([generator.permutation(items) for _ in curves], 1)
    right = ranks[..., None] < items * np.array(curves)
    both = np.stack([right, np.ones_like(right)], -1).astype(np.float64)
    lesson = lesson_of(planted.opinions(count=20), Choice("auto", "", 0, "", 0, 1, 0), purpose="test")
    sums = np.repeat(both[None], seeds, 0)
    return Meetings(LearningCurves(lesson, tuple(map(str, range(len(curves)))), SIZES, sums, {}), seed=0)


def test_a_feature_that_is_ten_times_ahead() -> None:
    met = made((0.7, 0.8, 0.9), (0.6, 0.7, 0.8)).of(0, 1)
    assert met.lead.value == pytest.approx(0.1) and met.factor.value == pytest.approx(10)
    assert met.factor.low < 10 < met.factor.high and met.factor.low > 4
    assert np.isnan(met.meet.value) and met.meet.n == 0 and met.crossed == 0 and not met.bounded


def test_curves_that_cross() -> None:
    met = made((0.5, 0.65, 0.9), (0.6, 0.65 - 0.05, 0.7)).of(0, 1)
    assert met.meet.value == pytest.approx(10 * 10 ** (2 / 3), rel=0.02) and met.crossed == 1.0
    assert met.meet.low < met.meet.value < met.meet.high


def test_there_from_the_start_is_a_bound() -> None:
    met = made((0.85, 0.9, 0.9), (0.6, 0.7, 0.8)).of(0, 1)
    assert met.bounded and met.factor.value == pytest.approx(100)


def test_the_stronger_one_comes_first_and_the_weaker_is_worth_less() -> None:
    meetings = made((0.6, 0.7, 0.8), (0.7, 0.8, 0.9))
    assert meetings.stronger_first(0, 1) == (1, 0)
    assert meetings.of(0, 1).factor.value == pytest.approx(0.1)
    assert meetings.of(0, 0).factor.value == 1.0


def table(**options: Any) -> Table:
    subject = Subject(planted.names(ambiguous=True, count=60), load("tiny"))
    found = run(registry.get("meaning/crossings"), subject, {"seeds": 2, "sizes": 3, "least": 0.1, **options}).data
    assert isinstance(found, Table)
    return found


def test_every_two_features() -> None:
    functions = [f"call:planted_features:{name}" for name in ("identity", "told", "noise")]
    found = table(features=",".join(functions))
    assert found.rows_named[0] == f"{functions[1]} over {functions[0]}" and len(found.rows_named) == 3
    assert found.measures["leads by"].low[0] > 0.1
    assert "at least this" in found.notes[found.rows_named[0]]
    assert found.measures["data factor"].value[0] == pytest.approx(38 / 4, rel=0.2)
    assert {name for own in found.baselines.values() for name in own} == set(found.measures)


def test_one_feature_meets_nobody() -> None:
    with pytest.raises(Refusal, match="two or more"):
        table(features="model")
    assert replace(made((0.1, 0.2, 0.3)).of(0, 0).lead, n=0).value == 0
