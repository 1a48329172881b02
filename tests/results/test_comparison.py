"""The table of several models: means and extremes of head grids, layers that models do not share, baselines."""

from __future__ import annotations

import numpy as np

from bertology.estimates.estimate import Estimates
from bertology.results.comparison import compare_results, mean_estimate
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from results.example_results import result


def estimates(values: object) -> Estimates:
    value = np.asarray(values, np.float64)
    return Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.full(value.shape, 7), interval="bootstrap")


def test_heads_are_compared_by_their_mean_and_by_the_highest() -> None:
    first, second = estimates([[0.1, 0.5], [0.2, 0.4]]), estimates([[0.9, 0.1]])
    grids = {
        name: result(HeadGrid(measures={"m": values}, baselines={"flat": {"m": estimates(values.value * 0)}}))
        for name, values in (("a", first), ("b", second))
    }
    rows = {(row.position, row.series): row for row in compare_results({"x": grids}).rows}
    mean = rows["mean over heads", "model"].estimates
    assert np.isclose(mean["a"].value, 0.3) and np.isclose(mean["a"].low, 0.2) and mean["b"].n == 7
    assert rows["highest head", "model"].locations == {"a": "1-2", "b": "1-1"}
    assert rows["highest head", "model"].cell("a") == "1-2: 0.5 [0.4, 0.6]"
    assert rows["highest head", "flat"].cell("a") == "1-2: 0 [-0.1, 0.1]"


def test_layers_and_rows_that_one_model_lacks_are_empty() -> None:
    def curve(n: int) -> LayerCurve:
        return LayerCurve(measures={"m": estimates([0.5] * n)}, baselines={"flat": {"m": estimates([0.0] * n)}})

    table = compare_results({"x": {"a": result(curve(2)), "b": result(curve(3))}})
    last = next(row for row in table.rows if row.position == "layer 2" and row.series == "model")
    assert last.cell("a") == "" and last.cell("b") == "0.5 [0.4, 0.6]"
    assert len(table.to_pandas()) == 2 * (2 + 3)
    named = Table(
        measures={"m": estimates([0.5])}, baselines={"flat": {"m": estimates([0.0])}}, row_names=("det | nsubj",)
    )
    assert "det \\| nsubj" in compare_results({"x": {"a": result(named)}}).to_markdown()


def test_the_latex_table_has_the_models_as_columns_and_each_measure_once() -> None:
    named = Table(
        measures={"m_1": estimates([0.5, np.nan])},
        baselines={"flat": {"m_1": estimates([0.0, 0.0])}},
        row_names=("det", "not measured"),
    )
    latex = compare_results({"x": {"a": result(named), "b": result(named)}}).to_latex(label="tab:x")
    assert latex.splitlines()[2] == r"\caption{x: value [interval] of each model and of its baselines.}"
    assert r"measure & at & series & a & b \\" in latex
    assert r"m\_1 & det & model & 0.5 [0.4, 0.6] & 0.5 [0.4, 0.6] \\" in latex
    assert r" & det & flat & 0 [$-$0.1, 0.1] & 0 [$-$0.1, 0.1] \\" in latex and "not measured" not in latex


def test_the_mean_leaves_out_what_was_not_measured() -> None:
    values = estimates([0.2, np.nan, 0.4])
    assert np.isclose(mean_estimate(values).value, 0.3)
    nothing = mean_estimate(estimates([np.nan, np.nan]))
    assert np.isnan(nothing.value) and nothing.n == 0
