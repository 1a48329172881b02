"""A table as points with intervals: rows down, a panel per measure, baselines below the model's point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np
from markupsafe import Markup

from bertology.estimates.estimate import describe_intervals
from bertology.results.drawing import svg
from bertology.results.drawing.panels import (
    MISSING_NOTE,
    Drawing,
    MeasureSeries,
    Panel,
    legend,
    marker,
    measure_series,
    missing_mark,
)
from bertology.results.drawing.style import series_class
from bertology.results.shapes import MODEL_SERIES, Table

WIDTH, MAX_COLUMNS, MAX_NAME_LENGTH = 220, 3, 44
LANE, TIGHT_LANE, GAP, BOTTOM = 9, 6, 9, 24
MAX_SPACED_ROWS = 20


def draw_table(table: Table, measures: Collection[str] = ()) -> Drawing:
    """One panel per measure, three across; the names of rows stand at the first of each three."""
    names = svg.deduplicate(table.row_names)
    empty = table.empty_rows()
    rows = {index: name for index, name in enumerate(names) if index not in empty}
    series = list(measure_series(table, measures))
    baselines = list(table.baselines)
    panels = [
        _panel(measure, table, rows, baselines, show_names=index % MAX_COLUMNS == 0)
        for index, measure in enumerate(series)
    ]
    columns = min(MAX_COLUMNS, len(panels))
    notes = [f"Bars: {describe_intervals({measure.name: measure.estimates for measure in series})}"]
    if any(not np.isfinite(measure.estimates.value[list(rows)]).all() for measure in series):
        notes.append(MISSING_NOTE)
    if empty:
        notes.append(f"Not measured ({len(empty)} rows): {', '.join(names[index] for index in empty)}")
    width = max(300.0, sum(panel.width for panel in panels[:columns]))
    return Drawing(panels, columns, tuple(notes), legend([MODEL_SERIES, *baselines], width, lines=False))


def _panel(
    measure: MeasureSeries, table: Table, rows: Mapping[int, str], baselines: list[str], *, show_names: bool
) -> Panel:
    low, high = svg.axis_range(measure.all_values())
    shown = {
        index: svg.truncate_label(name, MAX_NAME_LENGTH) + _format_heads(table, index) for index, name in rows.items()
    }
    left = 12 + max((svg.text_width(name) for name in shown.values()), default=0.0) if show_names else 8.0
    lanes = 1 + max(len(table.baselines_of(name)) for name in table.measures)
    height = lanes * (LANE if len(rows) <= MAX_SPACED_ROWS else TIGHT_LANE) + GAP
    bottom = max(1, len(rows)) * height

    def x(value: float) -> float:
        return left + 8 + (WIDTH - 16) * (value - low) / (high - low)

    marks = svg.ticks(low, high)
    parts = [svg.path([(x(tick), 0), (x(tick), bottom)], class_="rule") for tick in marks]
    for index in svg.visible_labels([x(tick) for tick in marks], [f"{tick:.6g}" for tick in marks]):
        parts.append(svg.text(x(marks[index]), bottom + 14, f"{marks[index]:.6g}", anchor="middle", class_="muted"))
    for position, (index, name) in enumerate(rows.items()):
        top = position * height
        if show_names:
            tip = name if not shown[index].startswith(name) else ""
            parts.append(svg.text(left - 4, top + height / 2 + 4, shown[index], anchor="end", tip=tip))
        note = table.notes.get(table.row_names[index], "")
        label = name + _format_heads(table, index)
        parts += _row(measure, index, label, note, baselines, x, left, top + GAP / 2, (height - GAP) / lanes)
    label = f"{measure.name}: {len(rows)} rows"
    return Panel(measure.name, measure.unit, left + WIDTH, bottom + BOTTOM, Markup().join(parts), label)


def _format_heads(table: Table, row: int) -> str:
    """The head of a row's numbers, or the function of a head, as a suffix of the row's name.

    ` (4-6)`, or ` (4-6, best 4-4)` if they differ; ` (next word)`.
    """
    attributes = table.head_attributes()
    head, best, function = (
        attributes[name][row] if name in attributes else None for name in ("head", "best_head", "function")
    )
    if head is None:
        return f" ({function})" if function else ""
    return f" ({head})" if best in (None, head) else f" ({head}, best {best})"


def _row(
    measure: MeasureSeries,
    index: int,
    name: str,
    note: str,
    baselines: list[str],
    x: Callable[[float], float],
    left: float,
    top: float,
    lane: float,
) -> Iterator[Markup]:
    for position, (series, estimates) in enumerate({MODEL_SERIES: measure.estimates, **measure.baselines}.items()):
        estimate, y = estimates[index], top + (position + 0.5) * lane
        number = 0 if series == MODEL_SERIES else baselines.index(series) + 1
        if not np.isfinite(estimate.value):
            if number == 0:
                yield missing_mark(left + 8, y + 4, name)
            continue
        tip = "\n".join(filter(None, (f"{name}, {series}: {svg.format_estimate(estimate)}", note)))
        parts: list[Markup] = []
        if svg.has_interval(estimate):
            parts.append(
                svg.element("path", d=f"M{x(estimate.low):.1f} {y:.1f}H{x(estimate.high):.1f}", class_="interval")
            )
        parts.append(marker(number, x(estimate.value), y, 4 if number == 0 else 3, tip=tip))
        yield svg.group(parts, class_=series_class(number))
