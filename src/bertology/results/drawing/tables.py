"""A table as an interval plot: rows down, a panel per measure; dot and bar for the model, markers for baselines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from bertology.results.drawing import svg
from bertology.results.drawing.axis import Axis
from bertology.results.drawing.panels import (
    DEFAULT_WIDTH,
    MISSING_NOTE,
    PANEL_GAP,
    Drawing,
    MeasureSeries,
    Panel,
    displayed_series,
    legend,
    marker,
    missing_mark,
    missing_notes,
    model_and_baselines,
)
from bertology.results.drawing.style import SeriesStyle, series_styles
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

MIN_WIDTH, MAX_WIDTH, MAX_COLUMNS = 120.0, 300.0, 3
NAME_SHARE = 0.42
"""Names of rows take at most this share of the width."""
ROW, TIGHT_ROW, MAX_SPACED_ROWS = 17.0, 13.0, 30
BOTTOM, INSET = 20.0, 10.0


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows shown: their index, name and addition (a head, or what a head does), and how high each is."""

    names: Mapping[int, str]
    additions: Mapping[int, str]
    height: float
    label_width: float


def draw_table(
    table: Table,
    measures: Collection[str] = (),
    width: float = DEFAULT_WIDTH,
    model_name: str = "",
    row_names: Collection[str] = (),
) -> Drawing:
    """One panel per measure, of all rows or of the given ones; names stand at the first panel of each line."""
    names = svg.deduplicate(table.row_names)
    empty = () if row_names else table.empty_rows()
    chosen = [i for i, name in enumerate(table.row_names) if name in row_names] or range(len(names))
    rows = _layout_rows(table, {i: names[i] for i in chosen if i not in empty}, width)
    series = displayed_series(table, measures)
    styles = series_styles(table.baselines)
    room = width - rows.label_width
    columns = max(1, min(MAX_COLUMNS, len(series), int((room + PANEL_GAP) // (MIN_WIDTH + PANEL_GAP))))
    plot = min(MAX_WIDTH, max(MIN_WIDTH, (room - PANEL_GAP * (columns - 1)) / columns))
    panels = [
        _panel(measure, table, rows, styles, plot, show_names=index % columns == 0)
        for index, measure in enumerate(series)
    ]
    notes: list[str] = []
    if any(not np.isfinite(measure.estimates.value[list(rows.names)]).all() for measure in series):
        notes.append(MISSING_NOTE)
    absent = [note for note in missing_notes(table, series, measures) if note != MISSING_NOTE]
    notes += absent
    if empty:
        notes.append(f"Not measured ({len(empty)} rows): {', '.join(names[index] for index in empty)}")
    used = {name: style for name, style in styles.items() if any(name in measure.baselines for measure in series)}
    key = legend(model_and_baselines(used, model_name or MODEL_SERIES), width, lines=False)
    return Drawing(panels, columns, tuple(notes), key)


def _layout_rows(table: Table, names: Mapping[int, str], width: float) -> _Rows:
    additions = {index: _describe_head(table, index) for index in names}
    widest = max((svg.text_width(f"{names[i]}  {additions[i]}") for i in names), default=0.0)
    height = ROW if len(names) <= MAX_SPACED_ROWS else TIGHT_ROW
    return _Rows(names, additions, height, min(NAME_SHARE * width, widest) + 8)


def _panel(
    measure: MeasureSeries,
    table: Table,
    rows: _Rows,
    styles: Mapping[str, SeriesStyle],
    plot: float,
    *,
    show_names: bool,
) -> Panel:
    axis = Axis.over(measure.all_values(), is_p_value=measure.display.is_p_value)
    left = rows.label_width if show_names else 0.0
    bottom = max(1, len(rows.names)) * rows.height

    def x(value: float) -> float:
        return left + INSET + (plot - 2 * INSET) * axis.position(value)

    ticks = axis.ticks(4 if plot < 180 else 5)
    parts = [svg.path([(x(tick), 0), (x(tick), bottom)], class_="rule") for tick, _ in ticks]
    positions, labels = [x(tick) for tick, _ in ticks], [label for _, label in ticks]
    for index in svg.visible_labels(positions, labels):
        parts.append(svg.text(positions[index], bottom + 14, labels[index], anchor="middle", class_="muted"))
    for position, (index, name) in enumerate(rows.names.items()):
        middle = (position + 0.5) * rows.height
        full = f"{name}  {rows.additions[index]}".strip()
        if show_names:
            parts += _row_name(name, rows.additions[index], left - 8, middle + 4)
        parts.append(svg.path([(left, middle), (left + plot, middle)], class_="rule"))
        note = table.notes.get(table.row_names[index], "")
        parts += _row(measure, index, full, note, styles, x, left, middle)
    label = f"{measure.name}: {len(rows.names)} rows"
    return Panel(measure.name, measure.unit, left + plot, bottom + BOTTOM, Markup().join(parts), label)


def _row_name(name: str, addition: str, width: float, y: float) -> Iterator[Markup]:
    """The name of a row and, muted, the head of its numbers or what the head does."""
    space = svg.text_width(f"  {addition}") if addition else 0.0
    shown = svg.fit_label(name, max(width - space, width / 2))
    rest = svg.fit_label(addition, width - svg.text_width(f"{shown}  "))
    is_cut = (shown, rest) != (name, addition)
    yield svg.text(0, y, shown, tip=f"{name}  {addition}".strip() if is_cut else "")
    if addition:
        yield svg.text(svg.text_width(f"{shown}  "), y, rest, class_="muted quiet")


def _describe_head(table: Table, row: int) -> str:
    """The head of a row's numbers, or the function of a head that is a row.

    `4-6`, or `4-6, best 4-4` if they differ; `next word`, or `closest: next word` if no function is confirmed.
    """
    attributes = table.head_attributes()
    head, best, function, closest = (
        attributes[name][row] if name in attributes else None
        for name in ("head", "best_head", "function", "closest_function")
    )
    if head is None:
        return str(function) if function else f"closest: {closest}" if closest else ""
    return str(head) if best in (None, head) else f"{head}, best {best}"


def _row(
    measure: MeasureSeries,
    index: int,
    name: str,
    note: str,
    styles: Mapping[str, SeriesStyle],
    x: Callable[[float], float],
    left: float,
    y: float,
) -> Iterator[Markup]:
    """Baselines as markers on the line of the row, and the model as a dot on the bar of its interval."""
    sign = measure.display.sign
    for series, estimates in measure.baselines.items():
        estimate = estimates[index]
        if np.isfinite(estimate.value):
            tip = f"{name}, {series}: {svg.format_estimate(estimate, sign)}"
            sized = marker(styles[series].marker, x(estimate.value), y, 3.2, tip=tip)
            yield svg.group([sized], class_=styles[series].class_)
    estimate = measure.estimates[index]
    if not np.isfinite(estimate.value):
        yield missing_mark(left + INSET, y + 4, name)
        return
    tip = "\n".join(filter(None, (measure.describe((index,), f"{name}, {MODEL_SERIES}"), note)))
    parts: list[Markup] = []
    if svg.has_interval(estimate):
        bar = f"M{x(estimate.low):.1f} {y:.1f}H{x(estimate.high):.1f}"
        parts.append(svg.element("path", d=bar, class_="interval"))
    parts.append(marker("dot", x(estimate.value), y, 3.6, tip=tip))
    yield svg.group(parts, class_="s0")
