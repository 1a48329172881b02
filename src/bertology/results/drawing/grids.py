"""Head grids: a heat map that is neutral at the baseline, and every head with its interval by layer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.results.drawing import svg
from bertology.results.drawing.axis import Axis
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
    fit_columns,
    legend,
    missing_mark,
    missing_notes,
    overlap_dot,
)
from bertology.results.drawing.style import SeriesStyle, series_styles
from bertology.results.shapes import Head, HeadGrid

GRID_LEFT = 30.0
MIN_CELL, MAX_CELL, SMALL_CELL = 9.0, 20.0, 14.0
MIN_PROFILE, MAX_PROFILE, PROFILE_GAP = 84.0, 170.0, 14.0
MIN_GRID_WIDTH = 130.0
MAX_PROFILES = 4
"""Grids of more measures than this are small multiples, without the profile of single heads."""
MEAN = "mean over heads"
MEAN_STYLE = SeriesStyle("series-all", "", "dot")
MIN_LABELLED_CELL, MIN_TWO_DIGIT_CELL = 11.0, 13.0


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes of a panel; a `profile` of width 0 is not drawn."""

    cell: float
    profile: float
    heads: int

    @property
    def grid_width(self) -> float:
        return self.heads * self.cell

    @property
    def width(self) -> float:
        profile = self.profile + PROFILE_GAP if self.profile else 0.0
        return max(GRID_LEFT + self.grid_width + profile + 6, MIN_GRID_WIDTH)


def draw_head_grid(grid: HeadGrid, measures: Collection[str] = (), width: float = DEFAULT_WIDTH) -> Drawing:
    """A heat map of each measure (layers down, heads across) and, of few measures, a profile of all heads by layer."""
    series = displayed_series(grid, measures)
    columns, layout = _layout(len(series), series[0].estimates.shape[1], width)
    styles = series_styles(grid.baselines)
    panels = [_head_panel(measure, grid, styles, layout) for measure in series]
    notes = ["Points: single heads with their intervals"] if layout.profile else []
    notes += [OVERLAP_NOTE, *missing_notes(grid, series, measures)]
    used = {name for measure in series for name in measure.baselines}
    entries = {MEAN: MEAN_STYLE, **{name: style for name, style in styles.items() if name in used}}
    key = legend(entries, max(width, layout.width), lines=True) if layout.profile else None
    return Drawing(panels, columns, tuple(notes), key)


def _layout(n_panels: int, heads: int, width: float) -> tuple[int, _Layout]:
    """Columns and sizes: cells of at least 9 units, so that a narrow figure has fewer columns."""
    if n_panels > MAX_PROFILES:
        least, most = (_Layout(cell, 0.0, heads).width for cell in (SMALL_CELL - 2, SMALL_CELL))
        columns, panel = fit_columns(n_panels, width, min(least, max(width, MIN_GRID_WIDTH)), most)
        cell = min(SMALL_CELL, max(MIN_CELL, (panel - GRID_LEFT - 6) / heads))
        return columns, _Layout(cell, 0.0, heads)
    least = GRID_LEFT + heads * 13 + PROFILE_GAP + MIN_PROFILE + 6
    columns, panel = fit_columns(n_panels, width, min(least, width), 400)
    panel = min(panel, (width - PANEL_GAP * (columns - 1)) / columns)
    room = panel - GRID_LEFT - PROFILE_GAP - 6
    cell = min(MAX_CELL, max(MIN_CELL, (room - 110) / heads))
    profile = room - heads * cell
    if profile < MIN_PROFILE:
        cell = min(MAX_CELL, max(MIN_CELL, (room - MIN_PROFILE) / heads))
        profile = room - heads * cell
    if profile < MIN_PROFILE:
        return columns, _Layout(min(MAX_CELL, max(MIN_CELL, (panel - GRID_LEFT - 6) / heads)), 0.0, heads)
    return columns, _Layout(cell, min(MAX_PROFILE, profile), heads)


def _head_panel(measure: MeasureSeries, grid: HeadGrid, styles: Mapping[str, SeriesStyle], layout: _Layout) -> Panel:
    layers, heads = measure.estimates.shape
    name, neutral = measure.neutral_value()
    scale = ColourScale.of(measure.estimates.value, neutral, is_p_value=measure.display.is_p_value)
    parts = list(_cells(measure, scale, layout.cell))
    parts += _grid_labels(layers, heads, layout.cell)
    below = layers * layout.cell
    bar_width = max(layout.grid_width, min(MIN_GRID_WIDTH - GRID_LEFT - 6, layout.width - GRID_LEFT))
    parts.append(scale.bar(GRID_LEFT, below + 32, bar_width, name))
    best = grid.extreme_head(measure.name)
    if best is not None:
        x, y = GRID_LEFT + best[1] * layout.cell, best[0] * layout.cell
        size = layout.cell - 1
        parts.append(svg.element("rect", x=x, y=y, width=size, height=size, class_="best quiet"))
    if layout.profile:
        parts += _profile(measure, styles, GRID_LEFT + layout.grid_width + PROFILE_GAP, below, layout)
    low, high = svg.extremes(measure.estimates.value)
    label = f"{measure.name}: {layers} layers, {heads} heads, {low:.3g} to {high:.3g}"
    caption = "\n".join(filter(None, (measure.unit, _describe_best(measure, grid, best))))
    return Panel(measure.name, caption, layout.width, below + 32 + SCALE_HEIGHT, Markup().join(parts), label)


def _describe_best(measure: MeasureSeries, grid: HeadGrid, best: Head | None) -> str:
    """The head that stands out, with its number: "highest: 3-8, 93 %"."""
    if best is None:
        return ""
    value = measure.estimates.value[best[0], best[1]]
    sign = f" {measure.display.sign}" if measure.display.sign else ""
    end = "lowest" if measure.name in grid.lowest else "highest"
    return f"{end}: {best}, {value:.3g}{sign}".replace(", -", ", −")


def _grid_labels(layers: int, heads: int, cell: float) -> Iterator[Markup]:
    down = 1 if cell >= MIN_LABELLED_CELL else 2
    across = 1 if cell >= (MIN_TWO_DIGIT_CELL if heads > 9 else MIN_LABELLED_CELL) else 2
    for layer in range(0, layers, down):
        y = (layer + 0.5) * cell + 3.5
        yield svg.text(GRID_LEFT - 4, y, str(layer + 1), anchor="end", class_="muted small")
    for head in range(0, heads, across):
        x = GRID_LEFT + (head + 0.5) * cell - 0.5
        yield svg.text(x, layers * cell + 11, str(head + 1), anchor="middle", class_="muted small")
    yield svg.text(GRID_LEFT + heads * cell / 2, layers * cell + 23, "head", anchor="middle", class_="muted small")
    yield svg.text(9, layers * cell / 2, "layer", anchor="middle", class_="muted small", rotate=-90)


def _cells(measure: MeasureSeries, scale: ColourScale, cell: float) -> Iterator[Markup]:
    for layer, head in np.ndindex(*measure.estimates.shape):
        x, y = GRID_LEFT + head * cell, layer * cell
        value = float(measure.estimates.value[layer, head])
        name = f"head {Head(layer, head)}"
        if not np.isfinite(value):
            yield missing_mark(x + cell / 2 - 0.5, y + cell / 2 + 3.5, name)
            continue
        tip, class_ = measure.describe((layer, head), name), scale.class_of(value)
        yield svg.element("rect", x=x, y=y, width=cell - 1, height=cell - 1, class_=class_, tip=tip)
        if scale.needs_mark(value) and measure.overlaps_baseline((layer, head)):
            yield overlap_dot(x + cell / 2 - 0.5, y + cell / 2 - 0.5, class_)


def _profile(
    measure: MeasureSeries, styles: Mapping[str, SeriesStyle], left: float, height: float, layout: _Layout
) -> Iterator[Markup]:
    """Every head's value and interval, one below another within its layer, with the mean over heads and baselines."""
    layers, heads = measure.estimates.shape
    axis = Axis.over(measure.all_values(), is_p_value=measure.display.is_p_value)

    def x(value: float) -> float:
        return left + layout.profile * axis.position(value)

    shown = axis.ticks(4 if layout.profile < 120 else 5)
    for tick, _ in shown:
        yield svg.path([(x(tick), 0), (x(tick), height)], class_="rule")
    positions, labels = [x(tick) for tick, _ in shown], [label for _, label in shown]
    for index in svg.visible_labels(positions, labels, svg.SMALL_SIZE):
        yield svg.text(positions[index], height + 11, labels[index], anchor="middle", class_="muted small")
    yield svg.text(left + layout.profile / 2, height + 23, "each head", anchor="middle", class_="muted small")
    intervals, points = "", ""
    for layer, head in np.ndindex(layers, heads):
        estimate = measure.estimates[layer, head]
        y = (layer + (head + 1) / (heads + 1)) * layout.cell
        if np.isfinite(estimate.low) and np.isfinite(estimate.high):
            intervals += f"M{x(estimate.low):.1f} {y:.1f}H{x(estimate.high):.1f}"
        if np.isfinite(estimate.value):
            points += f"M{x(estimate.value) - 1.2:.1f} {y:.1f}h2.4"
    marks = [svg.element("path", d=intervals, class_="interval thin"), svg.element("path", d=points, class_="line")]
    yield svg.group(marks, class_="s0")
    by_untrained = sorted(measure.baselines, key=lambda name: styles[name].class_ != "untrained")
    lines = {name: (measure.baselines[name], styles[name]) for name in by_untrained}
    for name, (estimates, style) in {**lines, MEAN: (measure.estimates, MEAN_STYLE)}.items():
        means = _row_means(estimates.value)
        for run in finite_runs(means):
            line = [(x(float(means[layer])), (layer + 0.5) * layout.cell) for layer in run]
            line = line if len(line) > 1 else [(line[0][0], line[0][1] - 4), (line[0][0], line[0][1] + 4)]
            stroke = svg.path(line, class_="line thin", stroke_dasharray=style.dash, tip=name)
            yield svg.group([stroke], class_=style.class_)


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
