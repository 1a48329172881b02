"""Measures of heads for the model view: those of results by head, with intervals, sample sizes and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bertology.arrays import FloatArray
from bertology.errors import Refusal
from bertology.estimates.estimate import INTERVAL_LABELS
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid
from bertology.results.text_tables import input_names
from bertology.results.units import display_unit
from bertology.views.payload import HeadBaseline, HeadMeasure

DIGITS = 4


def measures_from_results(results: Sequence[Result], layers: int, heads: int) -> list[HeadMeasure]:
    """The measures of all results by head that have a value."""
    return [measure for result in results for measure in _result_measures(result, layers, heads)]


def _result_measures(result: Result, layers: int, heads: int) -> Iterator[HeadMeasure]:
    grid = result.data
    if not isinstance(grid, HeadGrid):
        return
    for name, estimates in grid.measures.items():
        if estimates.shape != (layers, heads):
            raise Refusal(
                f"{result.analysis} has {' x '.join(map(str, estimates.shape))} heads, the model {layers} x {heads}",
                "a result of the model shown",
                "Run the analysis on that model",
            )
        if not np.isfinite(estimates.value).any():
            continue
        corpus = input_names(result)["corpus"]
        yield HeadMeasure(
            name=name,
            unit=grid.units.get(name, ""),
            source=f"{result.analysis} on {corpus}" if corpus else result.analysis,
            interval=INTERVAL_LABELS[estimates.interval],
            values=_rows(estimates.value),
            low=_rows(estimates.low),
            high=_rows(estimates.high),
            n=estimates.n.tolist(),
            baselines=[
                HeadBaseline(name=baseline, values=_rows(values.value))
                for baseline, values in grid.baselines_of(name).items()
                if np.isfinite(values.value).any()
            ],
            lowest=name in grid.lowest,
            is_p_value=display_unit(grid.units.get(name, ""), name).is_p_value,
        )


def _rows(values: FloatArray) -> list[list[float | None]]:
    """Rounded values; None for missing ones, which JSON does not have."""
    return [[float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None for x in row] for row in values]
