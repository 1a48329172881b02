"""Shapes: required baselines, one attribute value per row, tidy records, names of heads."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from bertology.estimates.estimate import Estimates
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Shape, Table
from results.example_results import SHAPES, estimates


def test_measures_need_a_baseline() -> None:
    with pytest.raises(ValidationError, match="baseline"):
        HeadGrid(measures={"m": estimates(1, 2)}, baselines={})


def test_a_baseline_has_the_shape_of_its_measure() -> None:
    with pytest.raises(ValidationError, match="shape"):
        HeadGrid(measures={"m": estimates(2, 2)}, baselines={"b": {"m": estimates(1, 2)}})
    with pytest.raises(ValidationError, match="unknown measures"):
        HeadGrid(measures={"m": estimates(2, 2)}, baselines={"b": {"other": estimates(2, 2)}})


def test_attributes_have_one_value_per_row() -> None:
    values = {"m": estimates(2)}
    with pytest.raises(ValidationError, match="'head' has 1 values for 2 rows"):
        Table(measures=values, baselines={"b": values}, row_names=("x", "y"), attributes={"head": ("1-2",)})
    table = Table(measures=values, baselines={"b": values}, row_names=("x", "y"), attributes={"head": ("1-2", None)})
    assert table.attribute("head", 0) == "1-2" and table.attribute("direction", 0) is None


def test_records_are_in_long_form_with_one_series_each() -> None:
    rows = list(SHAPES["HeadGrid"].rows())
    assert rows[-1] == {
        "head": "3-4", "layer": 3, "head_in_layer": 4, "measure": rows[-1]["measure"], "series": "uniform attention",
        "value": 0.5, "low": 0.5, "high": 0.5, "n": 0, "unit": "", "interval": "exact",
    }  # fmt: skip
    first = [row for row in rows if row["measure"] == "mass" and row["head"] == "1-1"]
    assert [row["series"] for row in first] == ["model", "uniform attention", "untrained model"]
    assert first[0]["unit"] == "proportion, 0 to 1" and first[0]["interval"] == "bootstrap"


def test_attributes_and_notes_are_columns_of_all_records() -> None:
    rows = list(SHAPES["Table"].rows())
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert (rows[0]["row"], rows[0]["head"], rows[0]["n_examples"], rows[0]["note"]) == ("det", "1-2", 7, "few")
    assert rows[-1]["note"] == ""


def test_layers_of_a_curve_count_from_the_first_layer() -> None:
    assert [row["layer"] for row in SHAPES["LayerCurve"].rows() if row["series"] == "model"][:5] == [1, 2, 3, 4, 5]


def test_empty_rows_are_omitted_only_if_they_are_many() -> None:
    value = np.array([0.5, *[np.nan] * 5])
    names = tuple("abcdef")
    scores = {"m": Estimates.exact(value)}
    assert Table(measures=scores, baselines={"b": scores}, row_names=names).empty_rows() == (1, 2, 3, 4, 5)
    with_few_gaps = {"m": Estimates.exact(value[:3])}
    assert Table(measures=with_few_gaps, baselines={"b": with_few_gaps}, row_names=names[:3]).empty_rows() == ()


def test_the_sample_is_a_sentence() -> None:
    values = {"m": estimates(2)}
    curve = LayerCurve(measures=values, baselines={"b": values}, sample={"labels": 3, "intact accuracy": 0.87123})
    assert curve.describe_sample() == "Sample: 3 labels, intact accuracy 0.871."
    assert LayerCurve(measures=values, baselines={"b": values}).describe_sample() == ""


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_every_shape_has_records(shape: Shape) -> None:
    assert list(shape.rows())


def test_heads_are_printed_from_one() -> None:
    assert Head.parse("8-11") == Head(7, 10) == (7, 10)
    assert str(Head(7, 10)) == "8-11"
