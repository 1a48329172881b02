"""Results: JSON that round-trips, sample sizes in words, data frames, notebooks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.results.illustrations import Scatter
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve, Shape, Table
from results.example_results import SHAPES, estimates, result


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_json_round_trips(shape: Shape) -> None:
    record = result(shape).to_json()
    assert list(record) == [
        "analysis", "version", "options", "inputs", "shape", "n", "data", "baselines", "provenance",
    ]  # fmt: skip
    assert record["shape"] == type(shape).__name__
    restored = Result.from_json(json.dumps(record, allow_nan=False))
    assert restored.to_json() == record
    assert type(restored.data) is type(shape)


def test_paired_differences_survive_json_and_resampled_values_do_not() -> None:
    values = np.random.default_rng(0).normal(size=(20, 3))
    measured, control = (bootstrap_mean(sample, seed=0) for sample in (values, values / 2))
    zero = Estimates.exact(np.zeros(3))
    data = LayerCurve(measures={"m": measured}, baselines={"untrained model": {"m": control}, "zero": {"m": zero}})
    paired = data.with_paired_differences()
    assert list(paired.paired_differences) == ["untrained model"]
    difference = paired.paired_differences["untrained model"]["m"]
    np.testing.assert_allclose(difference.value, values.mean(0) / 2)
    assert paired.measures["m"] == measured and paired.measures["m"].resampled is None
    assert paired.baselines["untrained model"]["m"].resampled is None
    record = json.loads(json.dumps(result(paired).to_json(), allow_nan=False))
    restored = Result.from_json(record)
    assert isinstance(restored.data, LayerCurve)
    assert restored.data.paired_differences["untrained model"]["m"] == difference
    assert "paired_differences" not in result(data).to_json()["data"]


def test_missing_values_survive_json() -> None:
    value = np.array([np.nan, 1.0])
    data = Estimates(value=value, low=value, high=value, n=np.array([0, 2]), interval="range")
    curve = LayerCurve(measures={"m": data}, baselines={"b": {"m": data}})
    restored = Result.from_json(json.dumps(result(curve).to_json(), allow_nan=False)).data
    assert isinstance(restored, LayerCurve)
    assert restored.measures["m"] == data


@pytest.mark.parametrize(
    ("sizes", "text"), [((40, 40), "n = 40"), ((40, 12), "n = 12 to 40"), ((40, 0), "n = 40"), ((0, 0), "n = 0")]
)
def test_the_sample_size_ignores_missing_values(sizes: tuple[int, int], text: str) -> None:
    values = estimates(2).model_copy(update={"n": np.array(sizes)})
    baselines = {"chance": {"m": estimates(2)}}  # whose n is 7
    table = Table(measures={"m": values}, baselines=baselines, row_names=("det", "amod"))
    assert result(table).sample_size == text


def test_the_sample_size_of_an_illustration_is_the_number_of_inputs() -> None:
    assert result(Scatter(points=np.zeros((2, 2)), labels=("x", "y"), groups=("g", "h"))).sample_size == "n = 7"


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_all_kinds_of_frames_have_the_same_rows_and_columns(shape: Shape) -> None:
    full_result = result(shape)
    frame, polars, arrow = full_result.to_pandas(), full_result.to_polars(), full_result.to_arrow()
    n_rows = sum(row.get("series", "model") == "model" for row in full_result.rows())
    assert len(frame) == polars.shape[0] == arrow.num_rows == n_rows > 0
    assert list(frame.columns) == polars.columns == arrow.column_names
    assert list(frame.columns[:3]) == ["analysis", "model", "corpus"]
    assert set(frame["model"]) == {"a-model"} and set(frame["corpus"]) == {"a-corpus"}


def test_a_frame_has_one_row_per_number_and_a_column_per_baseline() -> None:
    frame = result(SHAPES["HeadGrid"]).to_pandas()
    assert list(frame.columns) == [
        "analysis", "model", "corpus", "measure", "layer", "head", "value", "low", "high", "n", "interval", "unit",
        "uniform attention", "untrained model",
    ]  # fmt: skip
    row = frame[(frame["measure"] == "mass") & (frame["head"] == "2-3")].iloc[0]
    expected = np.linspace(0.2, 0.8, 12)[6]
    assert (row["layer"], row["n"], row["unit"], row["interval"]) == (2, 7, "proportion, 0 to 1", "bootstrap")
    assert [row["value"], row["low"], row["high"]] == pytest.approx([expected, expected - 0.05, expected + 0.05])
    assert row["uniform attention"] == 0.5 and row["untrained model"] == pytest.approx(expected)
    other = frame[frame["measure"] != "mass"]
    assert np.isnan(np.asarray(other["untrained model"])).all() and set(other["uniform attention"]) == {0.5}


def test_rows_of_a_table_have_the_layer_of_their_head_and_further_attributes() -> None:
    frame = result(SHAPES["Table"]).to_pandas().head(5)
    assert [None if layer != layer else layer for layer in frame["layer"]] == [1, 2, None, 1, 2]
    assert frame["head"].tolist()[:2] == ["1-2", "2-1"]
    assert frame["n_examples"].tolist() == [7, 0, 7, 7, 7] and frame["note"].iloc[0] == "few"


def test_a_baseline_cannot_hide_another_column() -> None:
    measure = {"m": estimates(2)}
    table = Table(
        measures=measure, baselines={"value": measure}, row_names=("a", "b"), attributes={"n": (1, 2), "model": (3, 4)}
    )
    frame = result(table).to_pandas()
    assert frame["row n"].tolist() == [1, 2] and frame["row model"].tolist() == [3, 4]
    assert frame["n"].tolist() == [7, 0] and "baseline value" in frame.columns


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_a_result_is_printed_in_three_lines_at_most(shape: Shape) -> None:
    text = str(result(shape))
    assert text == repr(result(shape)) and len(text.splitlines()) <= 3 and len(text) <= 3 * 240
    assert text.startswith(f"group/name: {shape.shape}, a-model on a-corpus") and "n = 7" in text


def test_notebooks_show_a_small_table_and_the_figure() -> None:
    table = result(SHAPES["Table"])
    html = table._repr_html_()  # pyright: ignore[reportPrivateUsage]  # called by notebooks
    assert table.figure().svg in html
    assert html.count("</tr>") == 7  # a heading and three rows for each of two measures
    assert "</script>" not in html and "&lt;/script&gt;" in html


def test_the_figure_can_be_of_some_measures() -> None:
    both = result(SHAPES["HeadGrid"])
    assert "no panel of any" in both.figure().svg and "no panel of any" not in both.figure(panels="mass").svg
    with pytest.raises(Refusal, match="no panel called"):
        both.figure(panels="entropy")


def test_the_papers_of_an_analysis_as_bibtex() -> None:
    cited = result(SHAPES["Table"]).model_copy(update={"provenance": {"citations": ["clark2019", "own2026"]}})
    first, second = cited.bibtex().split("\n\n")
    assert (
        first.startswith("@inproceedings{clark2019,")
        and "author = {Clark and Khandelwal and Levy and Manning}" in first
    )
    assert second == "% no reference for own2026"
