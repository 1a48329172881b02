"""Results: JSON that round-trips, sample sizes in words, data frames, notebooks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve, Scatter, Shape, Table
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
def test_records_become_data_frames(shape: Shape) -> None:
    full_result = result(shape)
    n_rows = len(full_result.rows())
    assert (
        full_result.to_pandas().shape[0]
        == full_result.to_polars().shape[0]
        == full_result.to_arrow().num_rows
        == n_rows
        > 0
    )


def test_notebooks_show_the_figure() -> None:
    table = result(SHAPES["Table"])
    bundle = table._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]  # called by notebooks
    assert bundle == {"text/plain": "group/name: Table, n = 7", "image/svg+xml": table.figure().svg}
