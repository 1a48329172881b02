"""A matrix as a heat map, faint at the baseline; small ones carry their numbers."""

from __future__ import annotations

import altair as alt
import numpy as np

from bertology.results.charts.palette import Colours, Palette, colours_around
from bertology.results.charts.panels import CROSS, MISSING, UNCLEAR, Drawing, Measured, Row, data, distinct, measured
from bertology.results.shapes import Matrix

SMALL, SIDE = 400, 620
WRITTEN = 150
NAMES = 36


def matrix(given: Matrix, palette: Palette) -> Drawing:
    """One heat map a measure."""
    names = {"rows_named": distinct(given.rows_named), "columns_named": distinct(given.columns_named)}
    shape = given.model_copy(update=names)
    cell = _cell(shape)
    panels = [_panel(measure, shape, cell, palette) for measure in measured(shape)]
    width = len(shape.columns_named) * cell
    columns = 2 if len(panels) > 1 and width <= SMALL else 1
    missing = any(not np.isfinite(estimates.value).all() for estimates in shape.measures.values())
    notes = (*([UNCLEAR] if _marked(shape) else []), *([MISSING] if missing else []))
    return Drawing(panels, columns, notes, max(420, columns * width))


def _cell(shape: Matrix) -> int:
    longest = max(len(shape.rows_named), len(shape.columns_named))
    return max(4, min(44, SIDE // max(1, longest)))


def _written(shape: Matrix) -> bool:
    return len(shape.rows_named) * len(shape.columns_named) <= WRITTEN


def _marked(shape: Matrix) -> bool:
    return max(len(shape.rows_named), len(shape.columns_named)) <= NAMES


def _panel(measure: Measured, shape: Matrix, cell: int, palette: Palette) -> alt.LayerChart:
    told, faint = measure.faint()
    colours = colours_around(measure.estimates.value, faint, palette)
    rows = _rows(measure, shape, colours)
    width, height = len(shape.columns_named) * cell, len(shape.rows_named) * cell
    scale = alt.Scale(domain=list(colours.domain), range=list(colours.range), interpolate="rgb")
    legend = alt.Legend(
        title=None, orient="bottom", gradientLength=max(120, min(width, 300)), gradientThickness=8, format=".2~g"
    )
    base = alt.Chart(data(rows)).encode(
        alt.X("column:N", title=None, sort=None, axis=_axis(shape.columns_named), scale=_band(shape.columns_named)),
        alt.Y("row:N", title=None, sort=None, axis=_axis(shape.rows_named), scale=_band(shape.rows_named)),
        tooltip=measure.tooltip(("row", "row"), ("column", "column")),
    )
    known = base.transform_filter("datum.value !== null")
    layers = [known.mark_rect().encode(alt.Color("value:Q", scale=scale, legend=legend))]
    ink = alt.condition("datum.strong", alt.value(palette.paper), alt.value(palette.ink))
    if _written(shape):
        layers.append(known.mark_text(fontSize=10).encode(alt.Text("value:Q", format=".2~g"), color=ink))
    if _marked(shape):
        dots = known.transform_filter("datum.unclear")
        below = cell / 2 - 6 if _written(shape) else 0
        layers.append(dots.mark_point(filled=True, size=9, opacity=0.9, yOffset=below).encode(color=ink))
    gaps = base.transform_filter("datum.value === null")
    layers.append(gaps.mark_text(text=CROSS, fontSize=min(15, cell + 3), color=palette.soft))
    return alt.LayerChart(layer=layers).properties(
        width=width, height=height, title=measure.title(max(300, width), told)
    )


def _rows(measure: Measured, shape: Matrix, colours: Colours) -> list[Row]:
    rows: list[Row] = []
    for i, row in enumerate(shape.rows_named):
        for j, column in enumerate(shape.columns_named):
            found = measure.at((i, j))
            strong = found["value"] is not None and colours.strength(found["value"]) > 0.5
            found |= {"row": row, "column": column, "strong": strong}
            rows.append(found | {"unclear": measure.unclear((i, j))})
    return rows


def _axis(names: tuple[str, ...]) -> alt.Axis:
    """All names where they can be read, else so many that they can."""
    step = -(-len(names) // NAMES)
    return alt.Axis(
        values=list(names[::step]), ticks=False, domain=False, grid=False, labelLimit=160, labelOverlap=False
    )


def _band(names: tuple[str, ...]) -> alt.Scale:
    return alt.Scale(domain=list(names), paddingInner=0.0 if len(names) > NAMES else 0.05, paddingOuter=0)
