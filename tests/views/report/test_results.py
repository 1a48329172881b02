"""Results on the report: figures of the tested measures, tables of the tested rows."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from bertology.views.report.results import render_result
from results.example_results import SHAPES, estimates, measures_and_baselines, result

EMPTY = Estimates.empty((2, 3))


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "Table"])
def test_shapes_are_drawn(name: str) -> None:
    html = render_result(result(SHAPES[name]))
    assert "<svg" in html and "<figure>" in html and 'class="drawing"' in html


@pytest.mark.parametrize(
    "shape",
    [
        HeadGrid(**measures_and_baselines(2, 3)),
        HeadGrid(measures={"m": EMPTY}, baselines={"b": {"m": EMPTY}}),
        LayerCurve(measures={"m": EMPTY[0]}, baselines={"b": {"m": EMPTY[0]}}),
        LayerCurve(**measures_and_baselines(2)),
    ],
    ids=["grid", "empty grid", "empty curve", "curve"],
)
def test_missing_values_are_marked(shape: HeadGrid | LayerCurve) -> None:
    html = render_result(result(shape))
    assert "<svg" in html and "not measured" in html and '"nan"' not in html


def test_a_measure_without_a_number_has_no_figure() -> None:
    values = estimates(2)
    shape = LayerCurve(measures={"m": values, "unseen": EMPTY[0][:2]}, baselines={"b": {"m": values}})
    html = render_result(result(shape))
    assert html.count("<figure>") == 1 and '<p class="figure-name">unseen</p>' not in html
    assert "Not measured (no examples): unseen." in html


def test_only_the_requested_measures_are_drawn() -> None:
    shape = LayerCurve(measures={"m": estimates(2), "o": estimates(2)}, baselines={"b": {"m": estimates(2)}})
    html = render_result(result(shape), ["o"])
    assert html.count("<figure>") == 1 and '<p class="figure-name">o</p>' in html
    assert render_result(result(shape), ["unknown"]).count("<figure>") == 2


def test_a_grid_names_the_highest_head_of_each_measure() -> None:
    html = render_result(result(SHAPES["HeadGrid"]))
    assert "<th>highest head</th><th>value [95 % CI]</th>" in html and "<td>3-4</td><td>0.8 [0.75, 0.85]</td>" in html
    assert HeadGrid(measures={"m": EMPTY}, baselines={"b": {"m": EMPTY}}).extreme_head("m") is None


def test_only_the_requested_rows_of_a_table_are_shown() -> None:
    values = {"m": estimates(3, missing=False)}
    shape = Table(measures=values, baselines={"b": values}, row_names=("det", "obj", "amod"))
    html = render_result(result(shape), ["m"], ["obj"])
    assert ">obj</td>" in html and ">det</td>" not in html and ">amod</td>" not in html


def test_a_row_has_its_head_interval_baselines_and_note() -> None:
    values = {"m": estimates(1, missing=False)}
    shape = Table(
        measures=values,
        baselines={"chance": values},
        row_names=("det",),
        attributes={"head": ("4-6",), "best_direction": ("dependent to governor",)},
        notes={"det": "<few>"},
    )
    html = render_result(result(shape))
    assert "<th>value [95 % CI]</th><th>n</th><th>chance</th>" in html and "<td>4-6</td>" in html
    assert "best direction" in html and "dependent to governor" in html
    assert "det: &lt;few&gt;" in html and "<th>low</th>" not in html and "<th>unit</th>" not in html
    ranges = {"m": values["m"].model_copy(update={"interval": "range"})}
    by_seed = render_result(result(shape.model_copy(update={"measures": ranges})))
    assert "<th>value [min, max over seeds]</th>" in by_seed


def test_measures_with_the_same_baselines_share_a_table() -> None:
    values = estimates(2, missing=False)
    shape = Table(
        measures={"a": values, "b": values, "p": values},
        baselines={"chance": {"a": values, "b": values}, "significance level": {"p": values}},
        row_names=("x", "y"),
    )
    html = render_result(result(shape))
    assert (
        html.count("<table>") == 2 and html.count("<th>chance</th>") == html.count("<th>significance level</th>") == 1
    )


def test_a_note_is_shown_once_for_all_measures_of_its_row() -> None:
    shape = Table(
        measures={name: estimates(3, missing=False) for name in ("a", "b", "c")},
        baselines={"level": {"a": Estimates.exact(np.zeros(3))}},
        row_names=("x", "y", "z"),
        notes={"x": "skipped: <few>"},
    )
    html = render_result(result(shape))
    assert html.count("skipped: &lt;few&gt;") == 1 and ">note<" not in html


def test_a_long_table_shows_its_first_rows_and_folds_the_rest() -> None:
    value = np.append(np.linspace(0, 1, 400), [np.nan] * 5)
    values = {"m": Estimates(value=value, low=value, high=value, n=np.full(405, 3))}
    shape = Table(measures=values, baselines={"b": values}, row_names=tuple(f"r{i}" for i in range(405)))
    shown, folded = render_result(result(shape)).split("<details", 1)
    assert shown.count("<tr>") == 1 + 10 and ">r9</td>" in shown and ">r10</td>" not in shown
    assert "<summary>All 300 numbers</summary>" in folded and folded.count("<tr>") == 1 + 300
    assert "First 300 of 400 rows; all rows are in the JSON." in folded
    assert "<summary>5 rows with too few examples</summary>" in folded and "r400, r401, r402, r403, r404" in folded


def test_a_short_table_is_not_folded() -> None:
    values = {"m": estimates(3, missing=False)}
    html = render_result(result(Table(measures=values, baselines={"b": values}, row_names=("a", "b", "c"))))
    assert "<details" not in html and html.count("<tr>") == 1 + 3 and "mark-estimate" in html


def test_further_measures_are_folded() -> None:
    measures = {f"m{i}": estimates(2) for i in range(6)}
    html = render_result(result(LayerCurve(measures=measures, baselines={"b": {"m0": estimates(2)}})))
    shown, folded = html.split("<details", 1)
    assert shown.count("<figure>") == 4 and "2 more measures" in folded and folded.count("<figure>") == 2


def test_the_sample_is_stated() -> None:
    shape = LayerCurve(**measures_and_baselines(2), sample={"labels": 3})
    assert "Sample: 3 labels." in render_result(result(shape))


def test_the_selected_and_the_best_head_stand_beside_the_numbers() -> None:
    values = {"m": estimates(1, missing=False)}
    attributes = {"head": ("8-11",), "chosen_in": (0.875,), "best_head": ("4-10",), "direction": ("up",)}
    shape = Table(measures=values, baselines={"b": values}, row_names=("det",), attributes=attributes)
    html = render_result(result(shape))
    numbers, others = html.split("</table>")[:2]
    assert all(text in numbers for text in (">8-11<", ">chosen in<", ">0.875<", ">best head<", ">4-10<"))
    assert "8-11" not in others and ">direction<" in others
