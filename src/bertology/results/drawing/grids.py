"""Head grids and matrices as heat maps that are faint at the baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.estimates.estimate import describe_intervals
from bertology.results.drawing import svg
from bertology.results.drawing.panels import (
    MISSING_NOTE,
    OVERLAP_NOTE,
    SCALE_HEIGHT,
    ColourScale,
    Drawing,
    MeasureSeries,
    Panel,
    legend,
    measure_series,
    missing_mark,
)
from bertology.results.drawing.style import dashes, series_class
from bertology.results.shapes import Head, HeadGrid, Matrix

CELL = 17
GRID_LEFT, PROFILE_WIDTH, PROFILE_GAP = 34, 130, 18
MEAN = "mean over heads"
MAX_SIDE, MAX_CELL = 620, 44
MAX_WRITTEN_CELLS = 150
"""Matrices of up to this many cells show their numbers."""
MAX_NAMES = 36
"""Rows and columns of larger matrices are not all named."""
MAX_NARROW_WIDTH = 400


def draw_head_grid(grid: HeadGrid, measures: Collection[str] = ()) -> Drawing:
    """For each measure a heat map (layers down, heads across) and a profile of all heads by layer."""
    series = list(measure_series(grid, measures))
    names = [MEAN, *grid.baselines]
    panels = [_head_panel(measure, names) for measure in series]
    notes = [f"Points: heads with {describe_intervals({m.name: m.estimates for m in series})}, by layer", OVERLAP_NOTE]
    notes += [MISSING_NOTE] if any(measure.has_missing for measure in series) else []
    columns = min(len(panels), max(1, int(1000 / panels[0].width)))
    classes = ["series-all", *(series_class(index) for index in range(1, len(names)))]
    key = legend(names, max(300.0, columns * panels[0].width), lines=True, classes=classes)
    return Drawing(panels, columns, tuple(notes), key)


def _head_panel(measure: MeasureSeries, names: list[str]) -> Panel:
    layers, heads = measure.estimates.shape
    neutral, value = measure.neutral_value()
    scale = ColourScale.of(measure.estimates.value, value)
    parts = list(_cells(measure, scale))
    parts += [
        svg.text(GRID_LEFT - 5, (y + 0.5) * CELL + 4, str(y + 1), anchor="end", class_="muted") for y in range(layers)
    ]
    below = layers * CELL
    step = 1 if heads <= 16 else 2
    parts += [
        svg.text(GRID_LEFT + (x + 0.5) * CELL, below + 13, str(x + 1), anchor="middle", class_="muted")
        for x in range(0, heads, step)
    ]
    parts.append(svg.text(GRID_LEFT + heads * CELL / 2, below + 27, "head", anchor="middle", class_="muted"))
    parts.append(svg.text(9, below / 2, "layer", anchor="middle", class_="muted", rotate=-90))
    parts.append(scale.bar(GRID_LEFT, below + 34, heads * CELL))
    left = GRID_LEFT + heads * CELL + PROFILE_GAP
    parts += _profile(measure, names, left, below)
    low, high = svg.extremes(measure.estimates.value)
    label = f"{measure.name}: {layers} layers, {heads} heads, {low:.3g} to {high:.3g}"
    caption = "; ".join(filter(None, (measure.unit, neutral)))
    return Panel(
        measure.name, caption, left + PROFILE_WIDTH + 12, below + 34 + SCALE_HEIGHT, Markup().join(parts), label
    )


def _cells(measure: MeasureSeries, scale: ColourScale) -> Iterator[Markup]:
    layers, heads = measure.estimates.shape
    for layer in range(layers):
        for head in range(heads):
            x, y = GRID_LEFT + head * CELL, layer * CELL
            value = float(measure.estimates.value[layer, head])
            name = f"head {Head(layer, head)}"
            if not np.isfinite(value):
                yield missing_mark(x + CELL / 2, y + 13, name)
                continue
            tip, class_ = measure.describe((layer, head), name), scale.class_of(value)
            yield svg.element("rect", x=x, y=y, width=CELL - 1, height=CELL - 1, class_=class_, tip=tip)
            if measure.overlaps_baseline((layer, head)):
                ink = "inverse" if scale.strength(value) > 0.5 else "muted"
                yield svg.element("circle", cx=x + CELL / 2 - 0.5, cy=y + CELL / 2 - 0.5, r=1.5, class_=f"{ink} quiet")


def _profile(measure: MeasureSeries, names: list[str], left: float, height: float) -> Iterator[Markup]:
    """Every head's value and interval, one below another within its layer, with the mean over heads and baselines."""
    layers, heads = measure.estimates.shape
    low, high = svg.axis_range(measure.all_values())

    def x(value: float) -> float:
        return left + PROFILE_WIDTH * (value - low) / (high - low)

    shown = svg.ticks(low, high)
    for tick in shown:
        yield svg.path([(x(tick), 0), (x(tick), height)], class_="rule")
    for index in _fitting([x(tick) for tick in shown], [f"{tick:.6g}" for tick in shown]):
        yield svg.text(x(shown[index]), height + 13, f"{shown[index]:.6g}", anchor="middle", class_="muted small")
    intervals, points = "", ""
    for layer, head in np.ndindex(layers, heads):
        estimate = measure.estimates[layer, head]
        y = (layer + (head + 1) / (heads + 1)) * CELL
        if np.isfinite(estimate.low) and np.isfinite(estimate.high):
            intervals += f"M{x(estimate.low):.1f} {y:.1f}H{x(estimate.high):.1f}"
        if np.isfinite(estimate.value):
            points += f"M{x(estimate.value) - 1.2:.1f} {y:.1f}h2.4"
    yield svg.group(
        [svg.element("path", d=intervals, class_="interval thin"), svg.element("path", d=points, class_="line")],
        class_="s0",
    )
    series = {MEAN: measure.estimates.value, **{name: b.value for name, b in measure.baselines.items()}}
    for name, values in series.items():
        index = names.index(name)
        means = _row_means(values)
        for run in finite_runs(means):
            line = [(x(float(means[layer])), (layer + 0.5) * CELL) for layer in run]
            line = line if len(line) > 1 else [(line[0][0], line[0][1] - 4), (line[0][0], line[0][1] + 4)]
            class_ = "series-all" if index == 0 else series_class(index)
            yield svg.group(
                [svg.path(line, class_="line thin", stroke_dasharray=dashes(index), tip=name)], class_=class_
            )


def _fitting(positions: list[float], labels: list[str]) -> list[int]:
    visible: list[int] = []
    for index, label in enumerate(labels):
        if not visible or positions[index] - positions[visible[-1]] > svg.text_width(label, 10) + 6:
            visible.append(index)
    return visible


def _row_means(values: FloatArray) -> FloatArray:
    finite = np.isfinite(values)
    sums, counts = np.where(finite, values, 0.0).sum(1), finite.sum(1)
    return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)


def finite_runs(values: FloatArray) -> list[list[int]]:
    """Indices of consecutive finite values."""
    runs: list[list[int]] = []
    for index in np.flatnonzero(np.isfinite(values)).tolist():
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def draw_matrix(matrix: Matrix, measures: Collection[str] = ()) -> Drawing:
    """One heat map per measure; small ones show their numbers."""
    series = list(measure_series(matrix, measures))
    rows, columns = svg.deduplicate(matrix.row_names), svg.deduplicate(matrix.column_names)
    cell = max(4, min(MAX_CELL, MAX_SIDE // max(1, len(rows), len(columns))))
    panels = [_matrix_panel(measure, rows, columns, cell) for measure in series]
    dots = [OVERLAP_NOTE] if max(len(rows), len(columns)) <= MAX_NAMES else []
    missing = [MISSING_NOTE] if any(measure.has_missing for measure in series) else []
    narrow = len(panels) > 1 and len(columns) * cell <= MAX_NARROW_WIDTH
    return Drawing(panels, 2 if narrow else 1, (*dots, *missing))


def _matrix_panel(measure: MeasureSeries, rows: tuple[str, ...], columns: tuple[str, ...], cell: int) -> Panel:
    neutral, value = measure.neutral_value()
    scale = ColourScale.of(measure.estimates.value, value)
    step_down, step_across = (-(-len(names) // MAX_NAMES) for names in (rows, columns))
    left = 8 + max((svg.text_width(svg.truncate_label(name)) for name in rows[::step_down]), default=0.0)
    below = 8 + max((svg.text_width(svg.truncate_label(name)) for name in columns[::step_across]), default=0.0)
    width, height = len(columns) * cell, len(rows) * cell
    parts = list(_matrix_cells(measure, scale, rows, columns, cell, left))
    for y in range(0, len(rows), step_down):
        tip = rows[y] if svg.truncate_label(rows[y]) != rows[y] else ""
        parts.append(svg.text(left - 6, (y + 0.5) * cell + 4, svg.truncate_label(rows[y]), anchor="end", tip=tip))
    for x in range(0, len(columns), step_across):
        tip = columns[x] if svg.truncate_label(columns[x]) != columns[x] else ""
        at = left + (x + 0.5) * cell + 4
        parts.append(svg.text(at, height + 6, svg.truncate_label(columns[x]), anchor="end", rotate=-90, tip=tip))
    scale_width = max(120.0, min(width, 300.0))
    parts.append(scale.bar(left, height + below + 6, scale_width))
    caption = "; ".join(filter(None, (measure.unit, neutral)))
    label = f"{measure.name}: {len(rows)} rows, {len(columns)} columns"
    total = left + max(width, scale_width) + 10
    return Panel(measure.name, caption, total, height + below + 6 + SCALE_HEIGHT, Markup().join(parts), label)


def _matrix_cells(
    measure: MeasureSeries, scale: ColourScale, rows: tuple[str, ...], columns: tuple[str, ...], cell: int, left: float
) -> Iterator[Markup]:
    numbers, dots = len(rows) * len(columns) <= MAX_WRITTEN_CELLS, max(len(rows), len(columns)) <= MAX_NAMES
    gap = 1 if dots else 0
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            x, y, value = left + j * cell, i * cell, float(measure.estimates.value[i, j])
            name = f"{row}, {column}"
            if not np.isfinite(value):
                yield missing_mark(x + cell / 2, y + cell / 2 + 4, name)
                continue
            tip, class_ = measure.describe((i, j), name), scale.class_of(value)
            yield svg.element("rect", x=x, y=y, width=cell - gap, height=cell - gap, class_=class_, tip=tip)
            ink = " inverse" if scale.strength(value) > 0.5 else ""
            if numbers and cell >= 26:
                yield svg.text(
                    x + cell / 2, y + cell / 2 + 3, f"{value:.2g}", anchor="middle", class_=f"small quiet{ink}"
                )
            if dots and measure.overlaps_baseline((i, j)):
                shift = cell / 2 - 6 if numbers and cell >= 26 else 0
                yield svg.element(
                    "circle", cx=x + cell / 2, cy=y + cell / 2 + shift, r=1.5, class_=f"quiet {ink.strip() or 'muted'}"
                )
