"""One comparison against several models: each curve over them, and what cannot be followed is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.analyses.series import run_series
from bertology.cli.inputs import series_of
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve, Matrix

NAMES = ("tiny", "random:tiny@1", "random:tiny@2")
OPTIONS = {"measures": "rsa"}


def subject() -> Subject:
    return Subject(corpus_named("english", limit=12), load("tiny"), against=load(NAMES[0]), randomise=False)


def test_rows_are_the_comparisons_one_by_one() -> None:
    compared = registry.get("geometry/similarity")
    result = run_series(compared, subject(), NAMES, map(load, NAMES[1:]), OPTIONS)
    assert isinstance(result.data, Matrix)
    assert result.data.rows_named == NAMES and result.data.columns_named == ("layer 0", "layer 1", "layer 2")
    np.testing.assert_allclose(result.data.measures["rsa"].value[0], 1, atol=1e-6)
    alone = run(compared, replace(subject(), against=load(NAMES[2])), OPTIONS).data
    assert isinstance(alone, LayerCurve)
    np.testing.assert_allclose(result.data.measures["rsa"].value[2], alone.measures["rsa"].value, atol=1e-9)
    assert {f"against {name}" for name in NAMES} <= set(result.inputs)
    assert Result.from_json(result.to_json()).to_json() == result.to_json()
    assert "shuffled stimuli" in result.data.baselines


def test_attention_by_layer_can_be_followed_and_heads_cannot() -> None:
    compared = registry.get("attention/change")
    result = run_series(compared, subject(), NAMES[:2], map(load, NAMES[1:2]), {"show": "layers"})
    assert isinstance(result.data, Matrix) and result.data.columns_named[0] == "layer 1"
    with pytest.raises(Refusal, match="--show layers"):
        run_series(compared, subject(), NAMES[:2], map(load, NAMES[1:2]), {})
    with pytest.raises(Refusal, match="one model"):
        run_series(registry.get("attention/entropy"), subject(), NAMES[:2], [], {})


def test_patterns_are_folders_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for step in (100, 90, 1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-5.txt").write_text("no folder")
    found = series_of(["mini@10%", str(tmp_path / "checkpoint-*"), "mini@10%"])
    assert found == ["mini@10%", *(str(tmp_path / f"checkpoint-{step}") for step in (90, 100, 1000))]
    with pytest.raises(Refusal, match="No folder matches"):
        series_of([str(tmp_path / "nothing-*")])
