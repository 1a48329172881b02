"""Results: estimates, required company, tidy rows, JSON that round-trips."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from bertology.results.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.sampling import joined, mean_over_sentences
from bertology.results.shapes import (
    Arc,
    ArcDiagram,
    Arcs,
    Curve,
    Example,
    Examples,
    Head,
    HeadGrid,
    LayerCurve,
    Matrix,
    Scatter,
    Shape,
    Table,
    Trajectory,
)


def estimates(*shape: int) -> Estimates:
    value = np.arange(float(np.prod(shape))).reshape(shape)
    return Estimates(value=value, low=value - 1, high=value + 1, n=np.full(shape, 7))


def measured(*shape: int) -> dict[str, Any]:
    return {"measures": {"m": estimates(*shape)}, "baselines": {"chance": {"m": estimates(*shape)}}}


SHAPES: list[Shape] = [
    HeadGrid(**measured(2, 3), units={"m": "share"}),
    LayerCurve(**measured(3), first=1),
    Curve(**measured(4), along="examples", points=np.array([1.0, 10, 100, 1000])),
    Matrix(**measured(2, 2), rows_named=("a", "b"), columns_named=("c", "d")),
    Table(**measured(2), rows_named=("det", "amod"), notes={"det": "few"}),
    Scatter(points=np.zeros((2, 2)), labels=("x", "y"), groups=("g", "h")),
    Trajectory(points=np.zeros((3, 2, 2)), labels=("x", "y"), groups=("g", "h")),
    Arcs(sentences=(ArcDiagram(words=("a", "b"), arcs=(Arc(start=0, end=1, label="det", weight=0.5),)),)),
    Examples(examples=(Example(words=("a", "b"), marked={"subject": (0,)}, score=0.5, caption="shows it"),)),
]


def result(data: Shape) -> Result:
    return Result(analysis="a/b", version=2, options={"seed": 1}, inputs={}, n=3, data=data, provenance={"x": "y"})


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.shape)
def test_json_round_trips(shape: Shape) -> None:
    whole = result(shape).to_json()
    assert list(whole) == [
        "analysis", "version", "options", "inputs", "shape", "n", "data", "baselines", "provenance",
    ]  # fmt: skip
    assert whole["shape"] == type(shape).__name__
    text = json.dumps(whole, allow_nan=False)
    again = Result.from_json(text)
    assert again.to_json() == whole
    assert type(again.data) is type(shape)


@pytest.mark.parametrize(
    ("counts", "told"), [((40, 40), "n = 40"), ((40, 12), "n up to 40"), ((40, 0), "n = 40"), ((0, 0), "n = 0")]
)
def test_what_numbers_rest_on_is_told_without_those_that_were_not_measured(counts: tuple[int, int], told: str) -> None:
    numbers = estimates(2).model_copy(update={"n": np.array(counts)})
    baselines = {"chance": {"m": estimates(2)}}  # of 7, which is not asked for
    found = result(Table(measures={"m": numbers}, baselines=baselines, rows_named=("det", "amod")))
    assert found.rests_on == told


def test_a_picture_tells_how_many_texts_there_were() -> None:
    assert result(Scatter(points=np.zeros((2, 2)), labels=("x", "y"), groups=("g", "h"))).rests_on == "n = 3"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.shape)
def test_rows_go_to_every_frame(shape: Shape) -> None:
    found = result(shape)
    rows = found.rows()
    assert rows
    assert found.to_pandas().shape[0] == found.to_polars().shape[0] == found.to_arrow().num_rows == len(rows)


def test_rows_name_heads_from_one() -> None:
    rows = result(SHAPES[0]).rows()
    assert rows[-1]["head"] == "2-3"
    assert (rows[-1]["layer"], rows[-1]["head_index"]) == (1, 2)
    assert rows[-1]["value"] == rows[-1]["baseline chance"] == 5.0
    assert Head.parse("8-11") == Head(7, 10) == (7, 10)
    assert str(Head(7, 10)) == "8-11"


def test_nan_survives_json() -> None:
    value = np.array([np.nan, 1.0])
    data = Estimates(value=value, low=value, high=value, n=np.array([0, 2]))
    curve = LayerCurve(measures={"m": data}, baselines={"b": {"m": data}})
    again = Result.from_json(json.dumps(result(curve).to_json(), allow_nan=False)).data
    assert isinstance(again, LayerCurve)
    assert again.measures["m"] == data


def test_a_claim_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValidationError, match="baseline"):
        HeadGrid(measures={"m": estimates(1, 1)}, baselines={})


def test_a_baseline_of_another_shape_is_refused() -> None:
    with pytest.raises(ValidationError, match="shape"):
        HeadGrid(measures={"m": estimates(2, 2)}, baselines={"b": {"m": estimates(1, 2)}})
    with pytest.raises(ValidationError, match="not there"):
        HeadGrid(measures={"m": estimates(2, 2)}, baselines={"b": {"other": estimates(2, 2)}})


def test_estimates_are_arrays_of_estimate() -> None:
    grid = estimates(2, 3)
    assert grid[1, 2] == Estimate(5.0, 4.0, 6.0, 7)
    assert grid[1].shape == (3,)
    assert Estimate(1, 0.5, 1.5, 3).clearly_above(0.4) and not Estimate(1, 0.5, 1.5, 3).clearly_above(0.6)
    assert Estimate(1, 0.5, 1.5, 3).clearly_below(Estimate(3, 2, 4, 3))
    assert grid[0, 0].everywhere((2, 2)).shape == (2, 2)


def test_per_layer_estimates_join() -> None:
    layers = [mean_over_sentences(np.array([1.0, 2.0]) * i, seed=0) for i in range(3)]
    np.testing.assert_allclose(joined(layers).value, [0, 1.5, 3.0])


def test_a_number_without_an_interval_says_so() -> None:
    assert str(Estimate(0.25, 0.125, 0.5, 9)) == "0.25 [0.125, 0.5]"
    assert str(Estimate(0.25, float("nan"), float("nan"), 1)) == "0.25 (no interval)"
