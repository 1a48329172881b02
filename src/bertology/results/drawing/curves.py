"""Curves over layers or along a quantity: the value with its interval as a band, baselines named at their ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimates
from bertology.results.drawing import svg
from bertology.results.drawing.axis import Axis
from bertology.results.drawing.grids import finite_runs
from bertology.results.drawing.panels import (
    DEFAULT_WIDTH,
    MODEL_STYLE,
    Drawing,
    MeasureSeries,
    Panel,
    displayed_series,
    fit_columns,
    missing_mark,
    missing_notes,
)
from bertology.results.drawing.style import SeriesStyle, series_styles
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Curve, LayerCurve

MIN_WIDTH, MAX_WIDTH = 250.0, 440.0
LEFT, RIGHT, TOP, BOTTOM = 36.0, 4.0, 8.0, 34.0
PLOT_HEIGHT = 130.0
LABEL_LINE = 12.0
MAX_LABEL_WIDTH, LABEL_SHARE = 120.0, 0.34
"""Names of lines take at most this width, and this share of the panel."""
MIN_LOG_RATIO = 30
"""Curves whose x values span this factor or more have a logarithmic axis."""

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class _XAxis:
    """Positions of the points along the axis, their labels, and what the axis is."""

    positions: FloatArray
    labels: Sequence[str]
    name: str


def draw_layer_curve(
    curve: LayerCurve, measures: Collection[str] = (), width: float = DEFAULT_WIDTH, model_name: str = ""
) -> Drawing:
    """By layer, numbered from `first_layer`."""
    layers = next(iter(curve.measures.values())).shape[0]
    labels = [str(layer + curve.first_layer) for layer in range(layers)]
    return _draw(curve, measures, _XAxis(np.arange(layers, dtype=float), labels, "layer"), width, model_name)


def draw_curve(
    curve: Curve, measures: Collection[str] = (), width: float = DEFAULT_WIDTH, model_name: str = ""
) -> Drawing:
    """Along the quantity of the curve, on a logarithmic axis if it spans orders of magnitude."""
    x = np.asarray(curve.x, float)
    logarithmic = len(x) > 2 and x.min() > 0 and x.max() / x.min() >= MIN_LOG_RATIO
    name = f"{curve.x_name} (logarithmic)" if logarithmic else curve.x_name
    axis = _XAxis(np.log(x) if logarithmic else x, [f"{value:g}" for value in x], name)
    return _draw(curve, measures, axis, width, model_name)


def _draw(curve: LayerCurve | Curve, measures: Collection[str], axis: _XAxis, width: float, model_name: str) -> Drawing:
    series = displayed_series(curve, measures)
    columns, panel_width = fit_columns(len(series), width, min(MIN_WIDTH, width), MAX_WIDTH)
    styles = series_styles(curve.baselines)
    panels = [_panel(measure, styles, axis, panel_width, model_name or MODEL_SERIES) for measure in series]
    return Drawing(panels, columns, tuple(missing_notes(curve, series, measures)))


def _panel(
    measure: MeasureSeries, styles: Mapping[str, SeriesStyle], axis: _XAxis, width: float, model_name: str
) -> Panel:
    y_axis = Axis.over(measure.all_values(), is_p_value=measure.display.is_p_value)
    ticks = y_axis.ticks()
    left = max(LEFT, 8 + max((svg.text_width(label) for _, label in ticks), default=0.0))
    names = [*measure.baselines, model_name] if measure.baselines else []
    label_width = min(MAX_LABEL_WIDTH, LABEL_SHARE * width, max(map(svg.text_width, names), default=0.0))
    wrapped = {name: _wrap_name(name, label_width) for name in names}
    height = max(PLOT_HEIGHT, LABEL_LINE * sum(map(len, wrapped.values())))
    end = width - RIGHT - (label_width + 8 if names else 0.0)
    start, length = float(axis.positions.min()), float(np.ptp(axis.positions)) or 1.0

    def x(index: float) -> float:
        return left + 4 + (end - left - 8) * (axis.positions[int(index)] - start) / length

    def y(value: float) -> float:
        return TOP + height * (1 - y_axis.position(value))

    parts: list[Markup] = []
    for tick, label in ticks:
        parts.append(svg.path([(left, y(tick)), (end, y(tick))], class_="rule"))
        parts.append(svg.text(left - 5, y(tick) + 4, label, anchor="end", class_="muted"))
    for index in svg.visible_labels([x(i) for i in range(len(axis.labels))], axis.labels):
        parts.append(svg.text(x(index), TOP + height + 14, axis.labels[index], anchor="middle", class_="muted"))
    # The untrained model is drawn first, so that it hides no simple rule that it coincides with.
    ends: dict[str, tuple[float, float]] = {}
    for name in sorted(measure.baselines, key=lambda name: styles[name].class_ != "untrained"):
        line, style = measure.baselines[name], styles[name]
        parts.append(svg.group(_line(line, x, y, name, style.dash, thin=True), class_=f"{style.class_} baseline"))
        _add_end(ends, name, line, x, y)
    parts.append(svg.group(_line(measure.estimates, x, y, model_name, "", thin=False), class_="s0 model"))
    parts.append(svg.group(_points(measure, x, y, axis, TOP + height), class_="s0"))
    if names:
        _add_end(ends, model_name, measure.estimates, x, y)
    parts += _line_labels(ends, wrapped, {**styles, model_name: MODEL_STYLE}, end + 6, TOP + height)
    parts.append(svg.text((left + end) / 2, TOP + height + 28, axis.name, anchor="middle", class_="muted"))
    label = f"{measure.name} by {axis.name}"
    return Panel(measure.name, measure.unit, width, TOP + height + BOTTOM, Markup().join(parts), label)


def _wrap_name(name: str, width: float) -> list[str]:
    """One or two lines of a name, cut to the width."""
    first, *rest = svg.wrap_label(name, width)
    return [svg.fit_label(line, width) for line in ([first, " ".join(rest)] if rest else [first])]


def _add_end(ends: dict[str, tuple[float, float]], name: str, line: Estimates, x: Scale, y: Scale) -> None:
    finite = np.flatnonzero(np.isfinite(line.value))
    if len(finite):
        ends[name] = (x(finite[-1]), y(float(line.value[finite[-1]])))


def _line(line: Estimates, x: Scale, y: Scale, name: str, dash: str, *, thin: bool) -> Iterator[Markup]:
    """The band of the interval and the line, both interrupted at missing values."""
    for run in finite_runs(line.high - line.low):
        edges = [(i, line.low[i]) for i in run] + [(i, line.high[i]) for i in reversed(run)]
        if any(line.high[i] > line.low[i] for i in run):
            points = " ".join(f"{x(i):.1f},{y(float(value)):.1f}" for i, value in edges)
            yield svg.element("polygon", points=points, class_="band")
    for run in finite_runs(line.value):
        points = [(x(i), y(float(line.value[i]))) for i in run]
        yield svg.path(points, class_="line thin" if thin else "line", stroke_dasharray=dash, tip=name)


def _points(measure: MeasureSeries, x: Scale, y: Scale, axis: _XAxis, bottom: float) -> Iterator[Markup]:
    for i, label in enumerate(axis.labels):
        if np.isnan(measure.estimates.value[i]):
            yield missing_mark(x(i), bottom - 3, f"{axis.name} {label}")
        else:
            height = y(float(measure.estimates.value[i]))
            tip = measure.describe((i,), f"{axis.name} {label}")
            yield svg.element("circle", cx=x(i), cy=height, r=2.6, class_="point", tip=tip)


def _line_labels(
    ends: Mapping[str, tuple[float, float]],
    wrapped: Mapping[str, Sequence[str]],
    styles: Mapping[str, SeriesStyle],
    left: float,
    bottom: float,
) -> Iterator[Markup]:
    """The name of each line at its end; names that would overlap move apart, joined to their line."""
    order = sorted(ends, key=lambda name: ends[name][1])
    heights = [LABEL_LINE * len(wrapped[name]) for name in order]
    for name, middle in zip(order, _spread_apart([ends[name][1] for name in order], heights, bottom), strict=True):
        x, y = ends[name]
        lines = wrapped[name]
        if abs(middle - y) > LABEL_LINE / 2 or left - x > LABEL_LINE:
            yield svg.path([(x + 2, y), (left - 2, middle)], class_="outline leader")
        first = middle - LABEL_LINE * (len(lines) - 1) / 2 + 4
        is_cut = " ".join(lines) != name
        weight = "point end strong" if styles[name] is MODEL_STYLE else "point end"
        labels = [
            svg.text(left, first + LABEL_LINE * i, line, class_=weight, tip=name if is_cut else "")
            for i, line in enumerate(lines)
        ]
        yield svg.group(labels, class_=styles[name].class_)


def _spread_apart(middles: Sequence[float], heights: Sequence[float], bottom: float) -> list[float]:
    """Rising positions of labels, moved as little as keeps them from overlapping and within the panel."""
    placed: list[float] = []
    for index, middle in enumerate(middles):
        half = heights[index] / 2
        least = placed[-1] + heights[index - 1] / 2 + half if placed else half
        placed.append(max(middle, least))
    limit = bottom + LABEL_LINE / 2
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], limit - heights[index] / 2)
        limit = placed[index] - heights[index] / 2
    return placed
