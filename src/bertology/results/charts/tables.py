"""A table as dots with intervals: rows down, a panel a measure, each baseline a mark of its own shape below."""

from __future__ import annotations

import altair as alt
import numpy as np

from bertology.results.charts.palette import Palette
from bertology.results.charts.panels import (
    CROSS,
    MISSING,
    Drawing,
    Measured,
    Row,
    data,
    distinct,
    has_zero,
    measured,
    number,
    told,
)
from bertology.results.shapes import Table
from bertology.results.spread import spread, spreads

WIDTH = 210
LANE, TIGHT, GAP = 8, 5, 9
MANY = 20
COLUMNS = 3
LABELS = 260
MEASURED = "measured"
SHAPES = ("circle", "diamond", "triangle-up", "square", "triangle-down", "cross", "triangle-right", "triangle-left")


def table(shape: Table, palette: Palette) -> Drawing:
    """One panel a measure, three across; names of rows stand at the first."""
    names = distinct(shape.rows_named)
    empty = shape.empty_rows()
    drawn = {index: name for index, name in enumerate(names) if index not in empty}
    panels = [_panel(m, shape, drawn, place % COLUMNS == 0, palette) for place, m in enumerate(measured(shape))]
    columns = min(COLUMNS, len(panels))
    missing = any(not np.isfinite(estimates.value[list(drawn)]).all() for estimates in shape.measures.values())
    notes = [f"bars: {spreads(shape.measures, shape.units)}", *([MISSING] if missing else [])]
    if empty:
        notes.append(f"nothing to measure in {len(empty)} rows: {', '.join(names[index] for index in empty)}")
    return Drawing(panels, columns, tuple(notes), columns * (WIDTH + 30) + LABELS // 2, together=True)


def _panel(measure: Measured, shape: Table, drawn: dict[int, str], named: bool, palette: Palette) -> alt.LayerChart:
    places, chances = list(drawn.values()), list(shape.baselines)
    rows = [row for index, name in drawn.items() for row in _rows(measure, index, name, shape)]
    series = [MEASURED, *chances]
    legend = alt.Legend(title=None, orient="bottom", columns=4, symbolOpacity=1)
    colour = alt.Color("series:N", legend=legend, scale=alt.Scale(domain=series, range=palette.told_apart(len(series))))
    shapes = alt.Shape(
        "series:N",
        legend=legend,
        scale=alt.Scale(domain=series, range=[SHAPES[i % len(SHAPES)] for i in range(len(series))]),
    )
    names = alt.Axis(labelLimit=LABELS, labels=named, ticks=False, domain=False, grid=False)
    fields = [("row", "row"), ("series", " "), ("told", f"{measure.name} [{spread(measure.unit)}]"), ("n", "n")]
    fields += [("note", "note")] if shape.notes else []
    lanes = 1 + max(sum(name in found for found in shape.baselines.values()) for name in shape.measures)
    line = lanes * (LANE if len(places) <= MANY else TIGHT) + GAP
    height = max(1, len(places)) * line
    rows_scale = alt.Scale(domain=places, paddingInner=GAP / line, paddingOuter=GAP / line / 2)
    base = alt.Chart(data(rows)).encode(
        alt.Y("row:N", title=None, sort=None, axis=names, scale=rows_scale),
        alt.YOffset("series:N", scale=alt.Scale(domain=[MEASURED, *measure.beside]), sort=None),
        tooltip=[alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields],
    )
    scale = alt.Scale(zero=has_zero(measure.everything()), nice=True, padding=6)
    x = alt.X(
        "value:Q",
        title=None,
        scale=scale,
        axis=alt.Axis(tickCount=4, format=".3~g", labelOverlap="greedy", labelSeparation=6),
    )
    known = base.transform_filter("datum.value !== null")
    rules = known.transform_filter("datum.low !== null").mark_rule(size=2, opacity=0.7)
    intervals = rules.encode(alt.X("low:Q", title=None), alt.X2("high:Q"), colour)
    own = f"datum.series === {MEASURED!r}"
    points = known.mark_point(filled=True, opacity=1).encode(
        x, colour, shapes, size=alt.condition(own, alt.value(56), alt.value(26))
    )
    gaps = base.transform_filter(f"datum.value === null && {own}")
    crosses = gaps.mark_text(text=CROSS, fontSize=15, color=palette.soft, align="left").encode(x=alt.value(4))
    return alt.LayerChart(layer=[intervals, points, crosses]).properties(
        width=WIDTH, height=height, title=measure.title(WIDTH)
    )


def _rows(measure: Measured, index: int, name: str, shape: Table) -> list[Row]:
    everyone = {MEASURED: measure.estimates, **measure.beside}
    return [
        {
            "row": name,
            "series": series,
            "value": number(estimates.value[index]),
            "low": number(estimates.low[index]),
            "high": number(estimates.high[index]),
            "told": told(estimates[index]),
            "n": int(estimates.n[index]),
            "note": shape.notes.get(shape.rows_named[index], ""),
        }
        for series, estimates in everyone.items()
    ]
