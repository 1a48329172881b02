"""Curves over layers or along a quantity: the value with its interval as a band, baselines dashed and named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimates, describe_intervals
from bertology.results.drawing import svg
from bertology.results.drawing.grids import finite_runs
from bertology.results.drawing.panels import (
    MISSING_NOTE,
    Drawing,
    MeasureSeries,
    Panel,
    measure_series,
    missing_mark,
)
from bertology.results.drawing.style import dashes, series_class
from bertology.results.shapes import MODEL_SERIES, Curve, LayerCurve

WIDTH, HEIGHT = 440, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36
MIN_LOG_RATIO = 30
"""Curves whose x values span this factor or more have a logarithmic axis."""

Scale = Callable[[float], float]


def draw_layer_curve(curve: LayerCurve, measures: Collection[str] = ()) -> Drawing:
    """By layer, numbered from `first_layer`."""
    layers = next(iter(curve.measures.values())).shape[0]
    positions = np.arange(layers, dtype=float)
    labels = [str(layer + curve.first_layer) for layer in range(layers)]
    return _draw(curve, measures, positions, labels, "layer")


def draw_curve(curve: Curve, measures: Collection[str] = ()) -> Drawing:
    """Along the quantity of the curve, on a logarithmic axis if it spans orders of magnitude."""
    x = np.asarray(curve.x, float)
    logarithmic = len(x) > 2 and x.min() > 0 and x.max() / x.min() >= MIN_LOG_RATIO
    positions = np.log(x) if logarithmic else x
    name = f"{curve.x_name} (logarithmic)" if logarithmic else curve.x_name
    return _draw(curve, measures, positions, [f"{value:g}" for value in x], name)


def _draw(
    curve: LayerCurve | Curve, measures: Collection[str], positions: FloatArray, labels: Sequence[str], x_name: str
) -> Drawing:
    series = list(measure_series(curve, measures))
    names = list(curve.baselines)
    panels = [_panel(measure, names, positions, labels, x_name) for measure in series]
    intervals = describe_intervals({measure.name: measure.estimates for measure in series})
    missing = [MISSING_NOTE] if any(measure.has_missing for measure in series) else []
    return Drawing(panels, min(2, len(panels)), (f"Band: {intervals}; dashed: baselines", *missing))


def _panel(
    measure: MeasureSeries, names: list[str], positions: FloatArray, labels: Sequence[str], x_name: str
) -> Panel:
    low, high = svg.axis_range(measure.all_values())
    start, length = float(positions.min()), float(np.ptp(positions)) or 1.0
    end = WIDTH - RIGHT - max((svg.text_width(svg.truncate_label(name)) for name in measure.baselines), default=0.0)

    def x(index: float) -> float:
        return LEFT + (end - LEFT) * (positions[int(index)] - start) / length

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    parts: list[Markup] = []
    for tick in svg.ticks(low, high):
        parts.append(svg.path([(LEFT, y(tick)), (end, y(tick))], class_="rule"))
        parts.append(svg.text(LEFT - 6, y(tick) + 4, f"{tick:.6g}", anchor="end", class_="muted"))
    for index in svg.visible_labels([x(i) for i in range(len(labels))], labels):
        parts.append(svg.text(x(index), HEIGHT - BOTTOM + 15, labels[index], anchor="middle", class_="muted"))
    ends: dict[str, tuple[float, float]] = {}
    for name, line in measure.baselines.items():
        index = names.index(name) + 1
        parts.append(svg.group(_line(line, x, y, name, dashes(index)), class_=f"{series_class(index)} baseline"))
        finite = np.flatnonzero(np.isfinite(line.value))
        if len(finite):
            ends[name] = (x(finite[-1]), y(float(line.value[finite[-1]])))
    parts.append(svg.group(_line(measure.estimates, x, y, MODEL_SERIES, ""), class_=f"{series_class(0)} model"))
    parts.append(svg.group(_points(measure, x, y, labels, x_name), class_=series_class(0)))
    parts += _line_labels(ends, end + 8, names)
    parts.append(svg.text((LEFT + end) / 2, HEIGHT - 6, x_name, anchor="middle", class_="muted"))
    label = f"{measure.name} by {x_name}"
    return Panel(measure.name, measure.unit, WIDTH, HEIGHT, Markup().join(parts), label)


def _line(line: Estimates, x: Scale, y: Scale, name: str, dash: str) -> Iterator[Markup]:
    """The band of the interval and the line, both interrupted at missing values."""
    for run in finite_runs(line.high - line.low):
        edges = [(i, line.low[i]) for i in run] + [(i, line.high[i]) for i in reversed(run)]
        if any(line.high[i] > line.low[i] for i in run):
            points = " ".join(f"{x(i):.1f},{y(float(value)):.1f}" for i, value in edges)
            yield svg.element("polygon", points=points, class_="band")
    for run in finite_runs(line.value):
        yield svg.path([(x(i), y(float(line.value[i]))) for i in run], class_="line", stroke_dasharray=dash, tip=name)


def _points(measure: MeasureSeries, x: Scale, y: Scale, labels: Sequence[str], x_name: str) -> Iterator[Markup]:
    for i, label in enumerate(labels):
        if np.isnan(measure.estimates.value[i]):
            yield missing_mark(x(i), HEIGHT - BOTTOM - 3, f"{x_name} {label}")
        else:
            height = y(float(measure.estimates.value[i]))
            tip = measure.describe((i,), f"{x_name} {label}")
            yield svg.element("circle", cx=x(i), cy=height, r=3.5, class_="point", tip=tip)


def _line_labels(ends: Mapping[str, tuple[float, float]], left: float, names: list[str]) -> Iterator[Markup]:
    """The name of each baseline at the end of its line; names that would overlap move apart, joined to their line."""
    order = sorted(ends, key=lambda name: ends[name][1])
    for name, height in zip(order, _spread_apart([ends[name][1] for name in order]), strict=True):
        x, y = ends[name]
        class_ = series_class(names.index(name) + 1)
        if abs(height - y) > svg.LINE_HEIGHT / 2 or left - x > svg.LINE_HEIGHT:
            yield svg.path([(x, y), (left - 2, height)], class_="outline leader")
        short = svg.truncate_label(name)
        label = svg.text(left, height + 4, short, class_="point end", tip=name if short != name else "")
        yield svg.group([label], class_=class_)


def _spread_apart(heights: Sequence[float]) -> list[float]:
    """Rising heights, moved as little as keeps them a line apart and within the panel."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + svg.LINE_HEIGHT) if placed else height)
    lowest = float(HEIGHT - BOTTOM)
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - svg.LINE_HEIGHT
    return placed
