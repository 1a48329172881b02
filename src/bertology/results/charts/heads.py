"""A grid of heads: layers down, heads across, faint at the baseline; beside it every head's interval by layer."""

from __future__ import annotations

import altair as alt
import numpy as np

from bertology.results.charts.palette import Palette, colours_around, dashes
from bertology.results.charts.panels import (
    CROSS,
    MISSING,
    UNCLEAR,
    Drawing,
    Measured,
    Row,
    data,
    has_zero,
    measured,
    number,
)
from bertology.results.shapes import Head, HeadGrid

CELL = 19
PROFILE = 190
MEAN = "mean over heads"


def head_grid(grid: HeadGrid, palette: Palette) -> Drawing:
    """A heat map and a profile by layer for each measure."""
    panels = [_panel(measure, list(grid.baselines), palette) for measure in measured(grid)]
    notes = ["each head by its layer: interval and value", "line: mean over heads; dashed: baselines", UNCLEAR]
    missing = any(not np.isfinite(estimates.value).all() for estimates in grid.measures.values())
    heads = max(estimates.shape[1] for estimates in grid.measures.values())
    columns = 1 if len(panels) < 3 or heads > 16 else 2
    return Drawing(panels, columns, (*notes, *([MISSING] if missing else [])), columns * (heads * CELL + PROFILE + 40))


def _panel(measure: Measured, chances: list[str], palette: Palette) -> alt.HConcatChart:
    rows = _rows(measure)
    layers, heads = measure.estimates.shape
    title = measure.title(heads * CELL + PROFILE, measure.faint()[0])
    heat, profile = _heat(measure, rows, palette), _profile(measure, rows, chances, palette)
    height = layers * CELL
    pair = alt.hconcat(
        heat.properties(width=heads * CELL, height=height), profile.properties(height=height), title=title
    )
    return pair.resolve_scale(color="independent", strokeDash="independent")


def _rows(measure: Measured) -> list[Row]:
    layers, heads = measure.estimates.shape
    places = [(layer, head) for layer in range(layers) for head in range(heads)]
    return [
        {
            "layer": layer + 1,
            "head": head + 1,
            "name": str(Head(layer, head)),
            "unclear": measure.unclear((layer, head)),
            **measure.at((layer, head)),
        }
        for layer, head in places
    ]


def _heat(measure: Measured, rows: list[Row], palette: Palette) -> alt.LayerChart:
    colours = colours_around(measure.estimates.value, measure.faint()[1], palette)
    for row in rows:
        row["strong"] = row["value"] is not None and colours.strength(row["value"]) > 0.5
    scale = alt.Scale(domain=list(colours.domain), range=list(colours.range), interpolate="rgb")
    legend = alt.Legend(
        title=None,
        orient="bottom",
        gradientLength=measure.estimates.shape[1] * CELL,
        gradientThickness=8,
        format=".2~g",
    )
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False, grid=False)
    base = alt.Chart(data(rows)).encode(
        alt.X("head:O", axis=axis, title="head", scale=alt.Scale(paddingInner=0.06, paddingOuter=0)),
        alt.Y("layer:O", axis=axis, title="layer", scale=alt.Scale(paddingInner=0.06, paddingOuter=0)),
        tooltip=measure.tooltip(("name", "head")),
    )
    known = base.transform_filter("datum.value !== null")
    cells = known.mark_rect().encode(alt.Color("value:Q", scale=scale, legend=legend))
    dots = known.transform_filter("datum.unclear").mark_point(filled=True, size=9, opacity=0.9)
    gaps = base.transform_filter("datum.value === null").mark_text(text=CROSS, fontSize=15, color=palette.soft)
    ink = alt.condition("datum.strong", alt.value(palette.paper), alt.value(palette.soft))
    return alt.LayerChart(layer=[cells, dots.encode(color=ink), gaps])


def _profile(measure: Measured, rows: list[Row], chances: list[str], palette: Palette) -> alt.LayerChart:
    """Every head's interval, one under another within its layer, with the layers' means and the baselines'."""
    heads = measure.estimates.shape[1]
    size = max(1.0, CELL / (heads + 1) - 0.4)
    values = alt.X(
        "value:Q", title=None, scale=alt.Scale(zero=has_zero(measure.everything())), axis=alt.Axis(tickCount=4)
    )
    y = alt.Y("layer:O", axis=None)
    spread = alt.Chart(data(rows)).transform_filter("datum.value !== null")
    spread = spread.encode(y, yOffset=alt.YOffset("head:O"), tooltip=measure.tooltip(("name", "head")))
    intervals = spread.mark_rule(size=size, opacity=0.45, color=palette.mark).encode(
        alt.X("low:Q", title=None), alt.X2("high:Q")
    )
    points = spread.mark_point(filled=True, size=8, opacity=0.9, color=palette.mark).encode(values)
    lines = _lines(measure, chances, palette).encode(values, y)
    return alt.LayerChart(layer=[intervals, points, lines]).properties(width=PROFILE)


def _lines(measure: Measured, chances: list[str], palette: Palette) -> alt.Chart:
    """The means over heads; a baseline has the same colour and dashes in every panel."""
    rows = _means(MEAN, measure.estimates.value)
    for name, chance in measure.beside.items():
        rows += _means(name, chance.value)
    everyone = [MEAN, *chances]
    colours = dict(zip(everyone, [palette.ink, *palette.told_apart(len(everyone))[1:]], strict=True))
    patterns = dict(zip(everyone, dashes(len(everyone)), strict=True))
    shown = [MEAN, *measure.beside]
    legend = alt.Legend(title=None, orient="bottom", direction="vertical", symbolType="stroke", symbolSize=260)
    colour = alt.Scale(domain=shown, range=[colours[name] for name in shown])
    pattern = alt.Scale(domain=shown, range=[patterns[name] for name in shown])
    chart = alt.Chart(data(rows)).mark_line(point={"size": 16, "filled": True}, strokeWidth=1.6)
    return chart.encode(
        alt.Color("series:N", scale=colour, legend=legend),
        alt.StrokeDash("series:N", scale=pattern, legend=legend),
        alt.Order("layer:Q"),
        tooltip=[alt.Tooltip("layer:O"), alt.Tooltip("series:N", title=" "), alt.Tooltip("value:Q", format=".3g")],
    )


def _means(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[Row]:
    known = np.isfinite(values)
    sums, counts = np.where(known, values, 0.0).sum(1), known.sum(1)
    means = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return [{"series": name, "layer": layer + 1, "value": number(mean)} for layer, mean in enumerate(means)]
