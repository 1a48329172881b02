"""Measures of heads on a page: the numbers of results by head, with intervals, baselines and their source."""

from __future__ import annotations

import numpy as np
import pytest

import bertology
from bertology.errors import Refusal
from bertology.results.shapes import HeadGrid
from bertology.views.head_measures import measures_from_results


def test_a_result_by_head_becomes_measures_of_the_model_view() -> None:
    texts = bertology.corpus(["The cat sat on the mat.", "It is here."])
    result = bertology.run("attention/entropy", "tiny", texts)
    run = bertology.view("tiny", "The cat sat.", results=result).payload.runs[0]
    assert [measure.name for measure in run.measures] == list(result.measures)
    first, grid = run.measures[0], result.data
    assert isinstance(grid, HeadGrid)
    estimates = grid.measures[first.name]
    np.testing.assert_allclose(np.array(first.values, float), estimates.value, rtol=1e-3)
    np.testing.assert_allclose(np.array(first.low, float), estimates.low, rtol=1e-3)
    assert first.n == estimates.n.tolist() and first.source.startswith("attention/entropy on ")
    assert first.unit == grid.units[first.name]
    assert [each.name for each in first.baselines] == list(grid.baselines_of(first.name))


def test_missing_values_are_null_and_empty_measures_are_left_out() -> None:
    result = bertology.run("attention/entropy", "tiny", bertology.corpus(["The cat sat."]))
    grid = result.data
    assert isinstance(grid, HeadGrid)
    name = next(iter(grid.measures))
    estimates = grid.measures[name]
    value = estimates.value.copy()
    value[0, 1] = np.nan
    partly = estimates.model_copy(update={"value": value})
    missing = estimates.model_copy(update={"value": np.full_like(value, np.nan)})
    changed = grid.model_copy(update={"measures": {name: partly, "none": missing}})
    (measure,) = measures_from_results([result.model_copy(update={"data": changed})], *value.shape)
    assert measure.values[0][1] is None and measure.values[0][0] is not None


def test_a_grid_of_another_size_is_refused() -> None:
    result = bertology.run("attention/entropy", "tiny", bertology.corpus(["The cat sat."]))
    with pytest.raises(Refusal, match="the model 3 x 4"):
        measures_from_results([result], 3, 4)
