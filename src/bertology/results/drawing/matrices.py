"""Matrices as heat maps that are neutral at the baseline; small ones show their numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from markupsafe import Markup

from bertology.results.drawing import svg
from bertology.results.drawing.panels import (
    DEFAULT_WIDTH,
    OVERLAP_NOTE,
    PANEL_GAP,
    SCALE_HEIGHT,
    ColourScale,
    Drawing,
    MeasureSeries,
    Panel,
    displayed_series,
    missing_mark,
    missing_notes,
    overlap_dot,
)
from bertology.results.shapes import Matrix

MIN_CELL, MAX_CELL, NUMBER_CELL = 4.0, 36.0, 22.0
MAX_HEIGHT = 520.0
MAX_NAMES = 36
"""Rows and columns of larger matrices are not all named."""
MIN_BAR = 110.0


def draw_matrix(
    matrix: Matrix, measures: Collection[str] = (), width: float = DEFAULT_WIDTH, row_names: Collection[str] = ()
) -> Drawing:
    """One heat map per measure, of all rows or of the given ones."""
    series = displayed_series(matrix, measures)
    names = svg.deduplicate(matrix.row_names)
    shown = [i for i, name in enumerate(matrix.row_names) if name in row_names] or list(range(len(names)))
    rows = {index: names[index] for index in shown}
    columns = svg.deduplicate(matrix.column_names)
    left = min(0.4 * width, 8 + max((svg.text_width(name) for name in rows.values()), default=0.0))
    two = (width - PANEL_GAP) / 2
    half_room = two - left - 8
    fits = half_room >= MIN_BAR and half_room / max(1, len(columns)) >= NUMBER_CELL - 4
    across = 2 if len(series) > 1 and fits else 1
    room = (two if across == 2 else width) - left - 8
    side = min(room / max(1, len(columns)), MAX_HEIGHT / max(1, len(rows)))
    cell = max(MIN_CELL, min(MAX_CELL, side))
    panels = [_panel(measure, rows, columns, cell, left) for measure in series]
    dots = [OVERLAP_NOTE] if max(len(rows), len(columns)) <= MAX_NAMES else []
    return Drawing(panels, across, (*dots, *missing_notes(matrix, series, measures)))


def _panel(measure: MeasureSeries, rows: dict[int, str], columns: Sequence[str], cell: float, left: float) -> Panel:
    name, neutral = measure.neutral_value()
    scale = ColourScale.of(measure.estimates.value, neutral, is_p_value=measure.display.is_p_value)
    width, height = len(columns) * cell, len(rows) * cell
    parts = list(_cells(measure, scale, rows, columns, cell, left))
    step = max(1, -(-len(rows) // MAX_NAMES), -(-11 // int(max(cell, 1))))
    for position, label in list(enumerate(rows.values()))[::step]:
        shown = svg.fit_label(label, left - 6)
        y = (position + 0.5) * cell + 4
        parts.append(svg.text(left - 5, y, shown, anchor="end", tip=label if shown != label else ""))
    labels, below = _column_labels(columns, cell, left, height)
    parts += labels
    bar = max(MIN_BAR, min(width, 260.0))
    parts.append(scale.bar(left, height + below + 6, bar, name))
    label = f"{measure.name}: {len(rows)} rows, {len(columns)} columns"
    total = left + max(width, bar) + 8
    return Panel(measure.name, measure.unit, total, height + below + 6 + SCALE_HEIGHT, Markup().join(parts), label)


def _column_labels(columns: Sequence[str], cell: float, left: float, top: float) -> tuple[list[Markup], float]:
    """The names of columns, level if they fit and else turned; layers as numbers below one another's word."""
    numbers = [re.fullmatch(r"layer (\d+)", name) for name in columns]
    if all(numbers) and columns:
        columns = [match[1] for match in numbers if match]
    level = all(svg.text_width(name) + 4 <= cell for name in columns)
    step = 1 if level else max(1, -(-len(columns) // MAX_NAMES), -(-11 // int(max(cell, 1))))
    is_level = level or max((svg.text_width(name) for name in columns), default=0.0) < 24
    centres = [left + (index + 0.5) * cell for index in range(len(columns))]
    parts: list[Markup] = []
    below = 16.0
    for index in svg.visible_labels(centres, columns) if is_level else range(0, len(columns), step):
        x = centres[index]
        if is_level:
            parts.append(svg.text(x, top + 13, columns[index], anchor="middle"))
        else:
            shown = svg.fit_label(columns[index], 120)
            tip = columns[index] if shown != columns[index] else ""
            below = max(below, 8 + svg.text_width(shown))
            parts.append(svg.text(x + 4, top + 6, shown, anchor="end", rotate=-90, tip=tip))
    if all(numbers) and columns:
        parts.append(svg.text(left + len(columns) * cell / 2, top + 27, "layer", anchor="middle", class_="muted"))
        below = 32.0
    return parts, below


def _cells(
    measure: MeasureSeries, scale: ColourScale, rows: dict[int, str], columns: Sequence[str], cell: float, left: float
) -> Iterator[Markup]:
    numbers, dots = cell >= NUMBER_CELL, max(len(rows), len(columns)) <= MAX_NAMES
    gap = 1 if dots else 0
    for position, (i, row) in enumerate(rows.items()):
        for j, column in enumerate(columns):
            x, y, value = left + j * cell, position * cell, float(measure.estimates.value[i, j])
            name = f"{row}, {column}"
            if not np.isfinite(value):
                yield missing_mark(x + cell / 2, y + cell / 2 + 4, name)
                continue
            tip, class_ = measure.describe((i, j), name), scale.class_of(value)
            yield svg.element("rect", x=x, y=y, width=cell - gap, height=cell - gap, class_=class_, tip=tip)
            if numbers:
                number = f"{value:.2g}".replace("-", "−") if abs(value) < 10 else f"{value:.0f}"
                ink = f"small quiet on-{class_}"
                yield svg.text(x + cell / 2 - 0.5, y + cell / 2 + 3, number, anchor="middle", class_=ink)
            if dots and scale.needs_mark(value) and measure.overlaps_baseline((i, j)):
                shift = cell / 2 - 5 if numbers else 0
                yield overlap_dot(x + cell / 2 - 0.5, y + cell / 2 + shift, class_)
