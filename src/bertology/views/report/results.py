"""A result as HTML for the report and the documentation: figures, or a table of numbers for a table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from bertology.estimates.estimate import INTERVAL_LABELS, Estimate, Estimates, describe_intervals
from bertology.html import render_fragment
from bertology.results.drawing.figure import draw_shape
from bertology.results.drawing.panels import MeasureSeries, measure_series
from bertology.results.headline import headline
from bertology.results.html_table import html_table
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Table, UnmeasuredShape
from bertology.views.report.picture_shapes import row_picture

MAX_ROWS = 300
"""Numbers of a table on the page; the JSON has all."""
MAX_FIRST_ROWS = 10
"""Rows of a table that are shown at once; the others are folded."""
MAX_FIRST_PANELS = 4
"""Measures whose figures are shown at once; the others are folded."""
MAX_TABLE_NOTES = 4


def render_result(result: Result, measures: Collection[str] = (), row_names: Collection[str] = ()) -> Markup:
    """The result, or only some of its measures and rows, if it has them."""
    data = result.data
    if isinstance(data, Table):
        return _render_table(data, measures, row_names)
    remarks: list[str] = []
    if not isinstance(data, UnmeasuredShape):
        shown, empty = _split_by_values([series.name for series in measure_series(data, measures)], data.measures)
        measures = shown or measures
        unexplained = ", ".join(name for name in empty if shown and name not in data.not_measured)
        not_measured = f"Not measured (no examples): {unexplained}." if unexplained else ""
        remarks += [data.describe_sample(), data.describe_not_measured(), not_measured]
    drawing = draw_shape(data, measures)
    return render_fragment(
        "result.html",
        shape=data.shape,
        drawing=drawing,
        n_first=MAX_FIRST_PANELS,
        table=_highest_heads(data, measures) if isinstance(data, HeadGrid) else "",
        headline=headline(data),
        sample=" ".join(filter(None, remarks)),
    )


def _split_by_values(names: Sequence[str], measures: Mapping[str, Estimates]) -> tuple[list[str], list[str]]:
    """The measures with at least one number, and those without: an empty figure shows nothing."""
    shown = [name for name in names if np.isfinite(measures[name].value).any()]
    return shown, [name for name in names if name not in shown]


def _render_table(table: Table, measures: Collection[str], row_names: Collection[str]) -> Markup:
    series = list(measure_series(table, measures))
    empty = set() if row_names else set(table.empty_rows())
    selected = [index for index, name in enumerate(table.row_names) if name in row_names]
    rows = selected or [index for index in range(len(table.row_names)) if index not in empty]
    notes = {
        table.row_names[row]: table.notes[table.row_names[row]] for row in rows if table.row_names[row] in table.notes
    }
    in_column = len(rows) > MAX_TABLE_NOTES and len(notes) >= len(rows) / 2
    groups: dict[tuple[str, ...], list[MeasureSeries]] = {}
    for measure in series:
        groups.setdefault(tuple(measure.baselines), []).append(measure)
    shown = rows[: max(1, MAX_ROWS // len(series))]
    tables = [html_table(_records(table, group, shown, notes if in_column else {})) for group in groups.values()]
    is_long = len(shown) * len(series) > MAX_FIRST_ROWS
    first = _records(table, series[:1], shown[:MAX_FIRST_ROWS], {})
    return render_fragment(
        "result_table.html",
        picture=row_picture(table, series[0], shown[:MAX_FIRST_ROWS]),
        first=html_table(first) if is_long else "",
        tables=tables,
        n_numbers=len(shown) * len(series),
        attributes=_attribute_table(table, shown),
        n_rows=len(rows),
        n_shown=len(shown),
        empty=[table.row_names[index] for index in sorted(empty)],
        notes={} if in_column else notes,
        units=_names_by_unit({measure.name: measure.unit for measure in series}),
        headline=headline(table),
        sample=table.describe_sample(),
    )


def _records(
    table: Table, group: Sequence[MeasureSeries], rows: Sequence[int], notes: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Rows of numbers for measures with the same baselines."""
    header = _value_header(group)
    records: list[dict[str, Any]] = []
    for measure in group:
        for row in rows:
            name, estimate = table.row_names[row], measure.estimates[row]
            record: dict[str, Any] = {"row": name}
            record |= {key.replace("_", " "): values[row] for key, values in table.head_attributes().items()}
            record |= {"measure": measure.name, header: _format_estimate(estimate), "n": estimate.n}
            record |= {baseline: float(values.value[row]) for baseline, values in measure.baselines.items()}
            records.append(record | ({"note": notes.get(name, "")} if notes else {}))
    return records


def _attribute_table(table: Table, rows: Sequence[int]) -> Markup:
    """The attributes of the rows that do not stand beside the numbers."""
    names = [name for name in table.attributes if name not in table.head_attributes()]
    if not names:
        return Markup()
    return html_table(
        [{"row": table.row_names[i], **{n.replace("_", " "): table.attribute(n, i) for n in names}} for i in rows]
    )


def _value_header(series: Sequence[MeasureSeries]) -> str:
    intervals = describe_intervals({measure.name: measure.estimates for measure in series})
    if intervals == INTERVAL_LABELS["exact"]:
        return "value"
    return f"value [{intervals.replace('[min, max]', 'min, max')}]"


def _format_estimate(estimate: Estimate) -> str:
    if not math.isfinite(estimate.value):
        return "–"
    return f"{estimate.value:.3g}" if estimate.interval == "exact" else str(estimate)


def _names_by_unit(units: dict[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for measure, unit in units.items():
        if unit:
            names.setdefault(unit, []).append(measure)
    return names


def _highest_heads(grid: HeadGrid, measures: Collection[str]) -> Markup:
    """For each measure the head with the highest value, or the lowest; none if all heads are equal."""
    series = list(measure_series(grid, measures))
    header = _value_header(series)
    records: list[dict[str, Any]] = []
    for measure in series:
        head = grid.extreme_head(measure.name)
        if head is not None:
            best: Estimate = measure.estimates[head]
            name = f"{measure.name} (lowest)" if measure.name in grid.lowest else measure.name
            column = "highest or lowest head" if grid.lowest else "highest head"
            record = {"measure": name, column: str(head), header: _format_estimate(best), "n": best.n}
            baselines = {name: _format_estimate(values[head]) for name, values in measure.baselines.items()}
            records.append({**record, **baselines})
    return html_table(records) if records else Markup()
