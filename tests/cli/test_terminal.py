"""Results as a reader sees them: brackets are printed, exact numbers have no interval, notes are told."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.cli.terminal import show
from bertology.results.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Example, Examples, Shape, Table

ANALYSIS = registry.get("attention/patterns")


def printed(data: Shape, capsys: pytest.CaptureFixture[str]) -> str:
    show(
        Result(analysis=ANALYSIS.name, version=1, options={}, inputs={}, n=3, data=data, provenance={}),
        ANALYSIS,
    )
    return capsys.readouterr().out


def test_brackets_in_sentences_are_no_styles(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("he", "[/b]", "said", "[sic]")
    assert "he [/b] said [sic]" in printed(Examples(examples=(Example(words=words),)), capsys)


def test_a_table_tells_values_intervals_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    score = Estimates(
        value=np.array([0.5, np.nan]), low=np.array([0.4, np.nan]), high=np.array([0.6, np.nan]), n=np.array([3, 0])
    )
    exact = Estimates.exact(np.array([0.25, 0.75]))
    table = Table(
        measures={"score": score},
        baselines={"level": {"score": exact}},
        rows_named=("one", "two"),
        notes={"one": "best: [a] sentence"},
    )
    out = printed(table, capsys)
    first, second = (
        next(line for line in out.splitlines() if line.strip().startswith(name)) for name in ("one", "two")
    )
    assert first.split() == ["one", "0.5", "[0.4,", "0.6]", "0.25"]
    assert second.split() == ["two", "0.75"]
    assert "best: [a] sentence" in out
