"""`ModelTable`: the numbers of several models side by side, one row for each measure and location."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.measure import Measure
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, UnmeasuredShape

if TYPE_CHECKING:
    import pandas

    from bertology.results.text_tables import TextTable

MAX_CELLS = 40
"""A matrix with more cells is compared by the mean of all and its highest cell."""


@dataclass(frozen=True)
class ModelTableRow:
    """A number of each model: a measure at one location, of the models (`series` is "model") or of one baseline.

    `locations` names the head or cell the number was measured at, where each model has its own.
    """

    analysis: str
    measure: str
    position: str
    series: str
    estimates: Mapping[str, Estimate]
    locations: Mapping[str, str] = field(default_factory=dict[str, str])

    def cell(self, model: str) -> str:
        """The number of a model as text, with its location; empty if it was not measured."""
        estimate = self.estimates.get(model)
        if estimate is None or not np.isfinite(estimate.value):
            return ""
        is_exact = estimate.interval == "exact" or np.isnan(estimate.low)
        text = f"{estimate.value:.3g}" if is_exact else str(estimate)
        return f"{self.locations[model]}: {text}" if model in self.locations else text


@dataclass(frozen=True, repr=False)
class ModelTable:
    """The numbers of several models. The mean over heads has the mean of the limits of their intervals.

    `not_compared` are analyses whose results have no measures: diagrams and example sentences.
    """

    models: tuple[str, ...]
    rows: tuple[ModelTableRow, ...]
    not_compared: tuple[str, ...] = ()

    def to_pandas(self) -> pandas.DataFrame:
        """One row per number, with columns analysis, measure, at, series, model, location, value, low, high, n."""
        import pandas

        return pandas.DataFrame(
            {
                "analysis": row.analysis,
                "measure": row.measure,
                "at": row.position,
                "series": row.series,
                "model": model,
                "location": row.locations.get(model, ""),
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "interval": estimate.interval,
            }
            for row in self.rows
            for model, estimate in row.estimates.items()
        )

    def numbers(self, analysis: str) -> list[list[ModelTableRow]]:
        """The rows of an analysis by measure and position: that of the models first, then those of its baselines."""
        groups: dict[tuple[str, str], list[ModelTableRow]] = {}
        for row in self.rows:
            if row.analysis == analysis:
                groups.setdefault((row.measure, row.position), []).append(row)
        measured = (rows for rows in groups.values() if any(map(rows[0].cell, self.models)))
        return [sorted(rows, key=lambda row: row.series != MODEL_SERIES) for rows in measured]

    def to_markdown(self) -> str:
        """The table in Markdown."""
        from bertology.results.text_tables import to_markdown

        return to_markdown(self._text_table())

    def to_latex(self, *, caption: str | None = None, label: str = "tab:models") -> str:
        """The table in LaTeX, for the package booktabs; the caption says what it shows if not given."""
        from bertology.results.text_tables import to_latex

        return to_latex(self._text_table(), caption, label)

    def _text_table(self) -> TextTable:
        from bertology.results.text_tables import TextTable

        analyses = tuple(dict.fromkeys(row.analysis for row in self.rows))
        with_name = len(analyses) > 1
        groups = [
            tuple(
                (*([analysis] if with_name else []), r.measure, r.position, r.series, *map(r.cell, self.models))
                for r in rows
            )
            for analysis in analyses
            for rows in self.numbers(analysis)
        ]
        caption = f"{', '.join(analyses)}: value [interval] of each model and of its baselines."
        labels = (*(["analysis"] if with_name else []), "measure", "at", "series")
        return TextTable(caption, (*labels, *self.models), tuple(groups), len(labels))

    def __repr__(self) -> str:
        return f"ModelTable: {len(self.rows)} rows, models {', '.join(self.models)}"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare_results(results: Mapping[str, Mapping[str, Result]]) -> ModelTable:
    """The results by analysis and model as one table."""
    models = tuple(dict.fromkeys(model for by_model in results.values() for model in by_model))
    rows = [row for analysis, by_model in results.items() for row in _rows(analysis, by_model)]
    unmeasured = [
        name
        for name, by_model in results.items()
        if any(isinstance(result.data, UnmeasuredShape) for result in by_model.values())
    ]
    return ModelTable(models, tuple(rows), tuple(unmeasured))


Numbers = dict[tuple[str, str], tuple[Estimate, str]]
"""Estimates and their locations by position and series."""


def _rows(analysis: str, by_model: Mapping[str, Result]) -> list[ModelTableRow]:
    numbers = {
        model: {name: _numbers(Measure(name, estimates, data)) for name, estimates in data.measures.items()}
        for model, result in by_model.items()
        if not isinstance(data := result.data, UnmeasuredShape)
    }
    rows: list[ModelTableRow] = []
    for measure in dict.fromkeys(name for measures in numbers.values() for name in measures):
        of_measure = {model: measures.get(measure, {}) for model, measures in numbers.items()}
        for position, series in dict.fromkeys(key for by_key in of_measure.values() for key in by_key):
            cells = {
                model: by_key[position, series] for model, by_key in of_measure.items() if (position, series) in by_key
            }
            locations = {model: location for model, (_, location) in cells.items() if location}
            estimates = {model: estimate for model, (estimate, _) in cells.items()}
            rows.append(ModelTableRow(analysis, measure, position, series, estimates, locations))
    return rows


def _numbers(measure: Measure) -> Numbers:
    """The numbers of a measure that models can be compared by, and of its baselines at the same locations."""
    series = {MODEL_SERIES: measure, **measure.baselines}
    data = measure.data
    if isinstance(data, HeadGrid) or (isinstance(data, Matrix) and measure.estimates.value.size > MAX_CELLS):
        parts = "heads" if isinstance(data, HeadGrid) else "cells"
        extreme = "lowest" if measure.low_stands_out else "highest"
        numbers: Numbers = {(f"mean over {parts}", n): (mean_estimate(m.estimates), "") for n, m in series.items()}
        for key in measure.best(1):
            location = (
                key if isinstance(key, str) else " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            )
            numbers |= {(f"{extreme} {parts[:-1]}", name): (m[key], location) for name, m in series.items()}
        return numbers
    label = _position_label(data)
    return {(label(key), name): (each[key], "") for key in measure for name, each in series.items()}


def _position_label(data: object) -> Callable[[Any], str]:
    match data:
        case LayerCurve():
            return lambda key: f"layer {key}"
        case Curve():
            return lambda key: f"{key:g} {data.x_name}"
        case Matrix():
            return " / ".join
        case _:
            return str


def mean_estimate(estimates: Estimates) -> Estimate:
    """The mean of all measured values; its interval is the mean of their limits, wider than necessary."""
    measured = np.isfinite(estimates.value)
    if not measured.any():
        return Estimate(np.nan, np.nan, np.nan, 0, estimates.interval)
    value, low, high = (float(part[measured].mean()) for part in (estimates.value, estimates.low, estimates.high))
    return Estimate(value, low, high, int(estimates.n[measured].max()), estimates.interval)
