"""Comparing a model with several others: layer curves become a matrix, other results stand side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.checkpoints import run_against_all
from bertology.analyses.run import RunInputs, run_analysis
from bertology.cli.options import expand_models
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.results import Results
from bertology.results.shapes import LayerCurve, Matrix

NAMES = ("tiny", "random:tiny@1", "random:tiny@2")
OPTIONS = {"measures": "rsa"}


def inputs() -> RunInputs:
    return RunInputs(load_corpus("english", limit=12), load("tiny"), against=load(NAMES[0]), random_baseline=False)


def test_rows_equal_single_comparisons() -> None:
    similarity = registry.get("geometry/representation_similarity")
    (result,) = run_against_all([(similarity, OPTIONS)], inputs(), map(load, NAMES))
    assert isinstance(result, Result) and isinstance(result.data, Matrix)
    assert result.data.row_names == NAMES and result.data.column_names == ("layer 0", "layer 1", "layer 2")
    np.testing.assert_allclose(result.data.measures["RSA"].value[0], 1, atol=1e-6)
    single = run_analysis(similarity, replace(inputs(), against=load(NAMES[2])), OPTIONS).data
    assert isinstance(single, LayerCurve)
    np.testing.assert_allclose(result.data.measures["RSA"].value[2], single.measures["RSA"].value, atol=1e-9)
    assert {f"against {name}" for name in NAMES} <= set(result.inputs)
    assert Result.from_json(result.to_json()).to_json() == result.to_json()
    assert "shuffled stimuli" in result.data.baselines


def test_results_by_layer_become_a_matrix_and_grids_of_heads_one_table() -> None:
    similarity = registry.get("attention/model_similarity")
    requests = [(similarity, {"show": "layers"}), (similarity, {})]
    layers, heads = run_against_all(requests, inputs(), map(load, NAMES[:2]))
    assert isinstance(layers, Result) and isinstance(layers.data, Matrix)
    assert layers.data.column_names[0] == "layer 1"
    assert isinstance(heads, Results) and list(heads) == list(NAMES[:2])
    single = run_analysis(similarity, replace(inputs(), against=load(NAMES[1])))
    assert heads[NAMES[1]].to_json() == single.to_json()
    assert heads.table().models == NAMES[:2]
    with pytest.raises(Refusal, match="analyses one model"):
        run_against_all([(registry.get("attention/entropy"), {})], inputs(), map(load, NAMES[:2]))


def test_patterns_expand_to_directories_sorted_by_number(tmp_path: Path) -> None:
    for step in (100, 90, 1000):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-5.txt").write_text("not a directory")
    expanded = expand_models(["mini@10%", str(tmp_path / "checkpoint-*"), "mini@10%"])
    assert expanded == ["mini@10%", *(str(tmp_path / f"checkpoint-{step}") for step in (90, 100, 1000))]
    with pytest.raises(Refusal, match="No directory matches"):
        expand_models([str(tmp_path / "nothing-*")])
