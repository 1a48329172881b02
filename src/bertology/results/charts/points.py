"""Points in the plane and paths through layers: one scale for both axes, for only distances mean something."""

from __future__ import annotations

import altair as alt
import numpy as np

from bertology.results.charts.palette import Palette
from bertology.results.charts.panels import Drawing, Row, data, number
from bertology.results.estimate import Floats
from bertology.results.shapes import Scatter, Trajectory

SIDE = 560
PICTURE = "a picture: it claims nothing by itself"


def scatter(shape: Scatter, palette: Palette) -> Drawing:
    """Labelled points, coloured by group."""
    places = zip(shape.points, shape.labels, shape.groups, strict=True)
    rows: list[Row] = [
        {"x": number(x), "y": number(y), "label": label, "group": group} for (x, y), label, group in places
    ]
    x, y = _axes(shape.points, shape.axes_named)
    names = [("label", "label"), ("group", "group"), ("x", shape.axes_named[0]), ("y", shape.axes_named[1])]
    base = alt.Chart(data(rows)).transform_filter("datum.x !== null && datum.y !== null")
    base = base.encode(x, y, _colour(shape.groups, palette), tooltip=_tooltip(names))
    size = 8 if len(rows) > 60 else 11
    left = _label(rows, size, _half(shape.points)[1])
    points = base.mark_point(filled=True, size=36 if len(rows) > 60 else 60, opacity=0.85)
    labels = base.transform_filter("datum.room").mark_text(align="left", dx=5, dy=-3, fontSize=size)
    layers = [points, labels.encode(alt.Text("label:N"), color=alt.value(palette.soft))]
    if shape.edges:
        layers.insert(0, _edges(shape, x, y, palette))
    notes = (PICTURE, *([f"labels left out where they would hide others: {left}"] if left else []))
    return Drawing([_square(alt.LayerChart(layer=layers))], notes=(*notes, *_missing(shape.points)), width=SIDE)


def _edges(shape: Scatter, x: alt.X, y: alt.Y, palette: Palette) -> alt.Chart:
    """Lines between the points that are joined."""
    rows: list[Row] = []
    for start, end in shape.edges:
        (x1, y1), (x2, y2) = shape.points[start], shape.points[end]
        rows.append(
            {"x": number(x1), "y": number(y1), "x2": number(x2), "y2": number(y2), "group": shape.groups[start]}
        )
    known = " && ".join(f"datum.{name} !== null" for name in ("x", "y", "x2", "y2"))
    lines = alt.Chart(data(rows)).transform_filter(known).mark_rule(strokeWidth=1.4, opacity=0.6)
    return lines.encode(x, y, _colour(shape.groups, palette), x2="x2:Q", y2="y2:Q")


def trajectory(shape: Trajectory, palette: Palette) -> Drawing:
    """Paths from the first layer, hollow, to the one shown, filled and labelled: the last, or where a slider is."""
    last = len(shape.points) - 1
    many = len(shape.labels) > 60
    size, half = 8 if many else 11, _half(shape.points.reshape(-1, 2))[1]
    rows: list[Row] = []
    left = 0
    for layer, points in enumerate(shape.points):
        places: list[Row] = []
        for item, ((x, y), label, group) in enumerate(zip(points, shape.labels, shape.groups, strict=True)):
            place: Row = {"layer": layer, "item": item, "x": number(x), "y": number(y)}
            places.append(place | {"label": label, "group": group})
        left = _label(places, size, half)
        rows += places
    x, y = _axes(shape.points.reshape(-1, 2), ("x", "y"))
    names = [("label", "label"), ("group", "group"), ("layer", "layer"), ("x", "x"), ("y", "y")]
    shown = alt.param(name="shown", value=last, bind=alt.binding_range(min=0, max=last, step=1, name="layer "))
    base = alt.Chart(data(rows)).encode(x, y, _colour(shape.groups, palette), tooltip=_tooltip(names))
    known = base.transform_filter("datum.x !== null && datum.y !== null")
    paths = base.transform_filter("datum.layer <= shown").mark_line(
        strokeWidth=0.8 if many else 1.6, opacity=0.25 if many else 0.6, invalid="break-paths-show-domains"
    )
    middle = known.transform_filter("datum.layer > 0 && datum.layer < shown").mark_point(
        filled=True, size=4 if many else 16
    )
    start = known.transform_filter("datum.layer === 0").mark_point(
        filled=False, size=14 if many else 46, fill=palette.paper
    )
    end = known.transform_filter("datum.layer === shown")
    layers = [
        paths.encode(alt.Order("layer:Q"), alt.Detail("item:N")),
        middle,
        start,
        end.mark_point(filled=True, size=30 if many else 70),
        end.transform_filter("datum.room")
        .mark_text(align="left", dx=5 if many else 7, fontSize=size)
        .encode(alt.Text("label:N"), color=alt.value(palette.ink)),
    ]
    panel = _square(alt.LayerChart(layer=layers)).add_params(shown)
    notes = [f"○ layer 0, ● the layer shown, of {last}", PICTURE]
    notes += [f"labels left out where they would hide others: {left} of the last layer"] if left else []
    return Drawing([panel], notes=(*notes, *_missing(shape.points)), width=SIDE)


def _label(rows: list[Row], size: int, half: float) -> int:
    """Mark the rows whose label has room, first come first served; how many have none."""
    taken: list[tuple[float, float, float]] = []
    for row in rows:
        row["room"] = False
        if row["x"] is None or row["y"] is None:
            continue
        across, down = row["x"] / (2 * half) * SIDE, row["y"] / (2 * half) * SIDE
        end = across + len(row["label"]) * size * 0.55 + 4
        row["room"] = not any(across < e and a < end and abs(down - d) < size for a, e, d in taken)
        if row["room"]:
            taken.append((across, end, down))
    return sum(not row["room"] and row["x"] is not None for row in rows)


def _missing(points: Floats) -> tuple[str, ...]:
    gaps = int((~np.isfinite(points)).any(-1).sum())
    return (f"without a place, so not drawn: {gaps}",) if gaps else ()


def _tooltip(names: list[tuple[str, str]]) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(field=field, type="quantitative", format=".3g", title=title)
        if field in {"x", "y"}
        else alt.Tooltip(field=field, type="nominal", title=title)
        for field, title in names
    ]


def _axes(points: Floats, named: tuple[str, str]) -> tuple[alt.X, alt.Y]:
    """Both axes span the same distance, so that near and far are the same in every direction."""
    centre, half = _half(points)
    scales = [alt.Scale(domain=[float(c) - half, float(c) + half], nice=False, zero=False) for c in centre]
    axis = alt.Axis(tickCount=5, format=".2~g")
    return (
        alt.X("x:Q", scale=scales[0], title=named[0], axis=axis),
        alt.Y("y:Q", scale=scales[1], title=named[1], axis=axis),
    )


def _half(points: Floats) -> tuple[Floats, float]:
    """The centre of the points, and how far the plane reaches from it."""
    known = points[np.isfinite(points).all(-1)]
    low, high = (known.min(0), known.max(0)) if len(known) else (np.zeros(2), np.ones(2))
    return (low + high) / 2, float((high - low).max()) * 0.56 or 1.0


def _colour(groups: tuple[str, ...], palette: Palette) -> alt.Color:
    """Colours that are told apart, or, where there are too many groups, an order from dark to light."""
    domain = list(dict.fromkeys(groups))
    legend = alt.Legend(title=None, symbolOpacity=1) if len(domain) > 1 else None
    if len(domain) <= len(palette.series):
        return alt.Color(
            "group:N", legend=legend, scale=alt.Scale(domain=domain, range=list(palette.series[: len(domain)]))
        )
    shades = alt.SchemeParams(name="viridis", extent=list(palette.ordered))
    return alt.Color("group:O", sort=None, legend=legend, scale=alt.Scale(domain=domain, scheme=shades))


def _square(chart: alt.LayerChart) -> alt.LayerChart:
    return chart.properties(width=SIDE, height=SIDE)
