"""Planted heads have the confidence of their definition."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.confidence import confidence, confidence_site
from bertology.analyses.head_grids import Average
from bertology.encoder.tokens import SpecialToken
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")
INPUTS = planted.recorded_inputs(planted.make_corpus(*TEXTS))
LENGTHS = np.array([len(recorded_input.tokens) for recorded_input in INPUTS])


def measure(*heads: planted.HeadAttention, average: Average = "micro") -> HeadGrid:
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [list(heads)]).with_sites([confidence_site])
    grid = confidence(recording, None, average=average, seed=0)
    assert isinstance(grid, HeadGrid)
    return grid


def test_a_head_with_one_target_has_full_confidence() -> None:
    grid = measure(planted.offset_head(0))
    assert grid.measures["confidence (all tokens)"].value[0, 0] == pytest.approx(1)
    assert grid.measures["confidence (no special tokens)"].value[0, 0] == pytest.approx(1)
    non_special = sum(
        int((recorded_input.tokens.special_kinds == SpecialToken.NONE).sum()) for recorded_input in INPUTS
    )
    assert grid.measures["confidence (no special targets)"].value[0, 0] == pytest.approx(non_special / LENGTHS.sum())


def test_confidence_without_special_targets_ignores_attention_to_separators() -> None:
    grid = measure(planted.special_head(SpecialToken.SEP))
    assert grid.measures["confidence (no special targets)"].value[0, 0] == 0
    assert grid.measures["confidence (all tokens)"].value[0, 0] > 0.5


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_uniform_attention_has_a_closed_form(average: Average) -> None:
    grid = measure(planted.uniform_head, average=average)
    expected = np.average(1 / LENGTHS, weights=LENGTHS if average == "micro" else None)
    for name, estimates in grid.measures.items():
        if name != "confidence (no special tokens)":
            assert estimates.value[0, 0] == pytest.approx(expected), name
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name


def test_confidence_equals_a_loop_over_rows() -> None:
    head = planted.random_head(5)
    grid = measure(head)
    rows: dict[str, list[float]] = {name: [] for name in grid.measures}
    for recorded_input in INPUTS:
        non_special = recorded_input.tokens.special_kinds == SpecialToken.NONE
        for i, row in enumerate(head(recorded_input)):
            rows["confidence (no special targets)"].append(row[non_special].max())
            rows["confidence (all tokens)"].append(row.max())
            if non_special[i]:
                rows["confidence (no special tokens)"].append(row[non_special].max())
    for name, values in rows.items():
        assert grid.measures[name].value[0, 0] == pytest.approx(np.mean(values), rel=1e-5), name
