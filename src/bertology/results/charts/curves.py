"""Curves over layers or along a quantity: the value with its interval as a band, each baseline dashed in its colour."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from bertology.results.charts.palette import Palette, dashes
from bertology.results.charts.panels import (
    CROSS,
    MISSING,
    Drawing,
    Measured,
    Row,
    data,
    has_zero,
    measured,
    number,
    told,
)
from bertology.results.estimate import Estimates
from bertology.results.shapes import Curve, LayerCurve
from bertology.results.spread import spread, spreads

WIDTH, HEIGHT = 340, 190
MEASURED = "measured"
DECADES = 1.5
TICKS = 10


def layer_curve(curve: LayerCurve, palette: Palette) -> Drawing:
    """By layer, numbered as the analysis numbers them: 0 for the embeddings where they count."""
    layers = next(iter(curve.measures.values())).shape[0]
    places = [layer + curve.first for layer in range(layers)]
    axis = alt.Axis(labelAngle=0, grid=False)
    return _drawing(curve, places, "layer", alt.X("place:O", title="layer", axis=axis), palette)


def plain_curve(curve: Curve, palette: Palette) -> Drawing:
    """Along the curve's own quantity, on a logarithmic axis where its points span decades."""
    points = curve.points
    positive = bool((points > 0).all())
    logarithmic = positive and bool(np.log10(points.max() / points.min()) > DECADES)
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=False)
    title = f"{curve.along} (logarithmic)" if logarithmic else curve.along
    ticks = {"values": points.tolist()} if len(points) <= TICKS else {}
    axis = alt.Axis(grid=False, format="~s" if logarithmic else "~g", labelOverlap="greedy", **ticks)
    x = alt.X("place:Q", title=title, scale=scale, axis=axis)
    return _drawing(curve, [float(point) for point in points], curve.along, x, palette)


def _drawing(curve: LayerCurve | Curve, places: Sequence[float], along: str, x: alt.X, palette: Palette) -> Drawing:
    chances = list(curve.baselines)
    panels = [_panel(measure, chances, places, along, x, palette) for measure in measured(curve)]
    columns = min(2, len(panels))
    missing = any(not np.isfinite(estimates.value).all() for estimates in curve.measures.values())
    notes = (f"band: {spreads(curve.measures, curve.units)}; dashed: baselines", *([MISSING] if missing else []))
    return Drawing(panels, columns, notes, columns * (WIDTH + 40), together=True)


def _panel(
    measure: Measured, chances: list[str], places: Sequence[float], along: str, x: alt.X, palette: Palette
) -> alt.LayerChart:
    everyone = {MEASURED: measure.estimates, **measure.beside}
    rows = [row for name, estimates in everyone.items() for row in _rows(name, estimates, places)]
    series = [MEASURED, *chances]
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke", symbolSize=300, columns=4, symbolOpacity=1)
    colour = alt.Color("series:N", legend=legend, scale=alt.Scale(domain=series, range=palette.told_apart(len(series))))
    pattern = alt.StrokeDash("series:N", legend=legend, scale=alt.Scale(domain=series, range=dashes(len(series))))
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(zero=has_zero(measure.everything()), nice=True),
        axis=alt.Axis(tickCount=5, format=".3~g"),
    )
    fields = [("place", along), ("series", " "), ("told", f"{measure.name} [{spread(measure.unit)}]"), ("n", "n")]
    tooltip = [alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields]
    base = alt.Chart(data(rows)).encode(x, colour, tooltip=tooltip)
    known = base.transform_filter("datum.value !== null")
    known_ends = base.transform_filter("datum.low !== null")
    bands = base.mark_area(opacity=0.16, line=False).encode(alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    rules = known_ends.mark_rule(opacity=0.55, size=1.2).encode(alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    lines = base.mark_line(strokeWidth=2, invalid="break-paths-show-domains").encode(y, pattern)
    points = known.mark_point(filled=True, opacity=1).encode(
        y, size=alt.condition(f"datum.series === {MEASURED!r}", alt.value(38), alt.value(14))
    )
    gaps = base.transform_filter(f"datum.value === null && datum.series === {MEASURED!r}")
    crosses = gaps.mark_text(text=CROSS, fontSize=15).encode(
        x, y=alt.value(HEIGHT - 6), color=alt.value(palette.soft), tooltip=tooltip
    )
    return alt.LayerChart(layer=[bands, rules, lines, points, crosses]).properties(
        width=WIDTH, height=HEIGHT, title=measure.title(WIDTH)
    )


def _rows(name: str, estimates: Estimates, places: Sequence[float]) -> list[Row]:
    return [
        {
            "series": name,
            "place": place,
            "value": number(estimates.value[index]),
            "low": number(estimates.low[index]),
            "high": number(estimates.high[index]),
            "told": told(estimates[index]),
            "n": int(estimates.n[index]),
        }
        for index, place in enumerate(places)
    ]
