"""A result as one figure: its panels below the model, corpus, sample size, special-token policy and options."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.results.drawing import svg
from bertology.results.drawing.curves import draw_curve, draw_layer_curve
from bertology.results.drawing.grids import draw_head_grid, draw_matrix
from bertology.results.drawing.panels import Drawing, Panel
from bertology.results.drawing.points import draw_scatter, draw_trajectory
from bertology.results.drawing.sentences import draw_arcs, draw_examples
from bertology.results.drawing.style import figure_css
from bertology.results.drawing.tables import draw_table
from bertology.results.palette import Theme
from bertology.results.shapes import (
    Arcs,
    Curve,
    Examples,
    HeadGrid,
    LayerCurve,
    Matrix,
    Scatter,
    Shape,
    Table,
    Trajectory,
)

if TYPE_CHECKING:
    from bertology.results.result import Result

PADDING, GAP, MIN_WIDTH = 16, 28, 520


@dataclass(frozen=True, slots=True)
class Figure:
    """The drawing of a result as an SVG image; notebooks show it."""

    svg: str = field(repr=False)
    n_layers: int = 0

    def _repr_svg_(self) -> str:
        return self.svg


def draw_shape(shape: Shape, measures: Collection[str] = ()) -> Drawing:
    """The panels of a shape; of a shape with measures, only the given ones if it has them."""
    match shape:
        case HeadGrid():
            return draw_head_grid(shape, measures)
        case LayerCurve():
            return draw_layer_curve(shape, measures)
        case Curve():
            return draw_curve(shape, measures)
        case Matrix():
            return draw_matrix(shape, measures)
        case Table():
            return draw_table(shape, measures)
        case Scatter():
            return draw_scatter(shape)
        case Trajectory():
            return draw_trajectory(shape)
        case Arcs():
            return draw_arcs(shape)
        case Examples():
            return draw_examples(shape)


def draw_figure(result: Result, theme: Theme | None = "light", measures: Collection[str] = ()) -> Figure:
    """The figure of a result, or of some of its measures; without a theme it has no style, for pages that bring it."""
    drawing = draw_shape(result.data, measures)
    rows = [drawing.panels[i : i + drawing.columns] for i in range(0, len(drawing.panels), drawing.columns)]
    widths = [max(panel.width for panel in column) for column in _columns(rows)]
    width = max(MIN_WIDTH, sum(widths) + GAP * max(0, len(widths) - 1))
    parts: list[Markup] = [svg.text(0, 14, result.analysis, class_="title")]
    y = 32.0
    for line in [line for fact in _facts(result, drawing) for line in svg.wrap_label(fact, width)]:
        parts.append(svg.text(0, y, line, class_="muted"))
        y += svg.LINE_HEIGHT
    y += 6
    for row in rows:
        heading = max(_heading_height(panel, w) for panel, w in zip(row, widths, strict=False))
        for index, panel in enumerate(row):
            x = sum(widths[:index]) + GAP * index
            parts += _panel(panel, x, y, heading, widths[index])
        y += heading + max(panel.height for panel in row) + GAP
    if drawing.legend is not None:
        parts.append(svg.group([drawing.legend.body], transform=f"translate(0 {y:.0f})", class_="legend"))
        y += drawing.legend.height
    if not rows:
        parts.append(svg.text(0, y + svg.LINE_HEIGHT, "No data", class_="muted"))
        y += 2 * svg.LINE_HEIGHT
    total, height = width + 2 * PADDING, y + 2 * PADDING
    background = svg.element("rect", width="100%", height="100%", class_="background")
    body = background + svg.group(parts, transform=f"translate({PADDING} {PADDING})")
    style = "" if theme is None else figure_css(theme)
    return Figure(str(svg.document(total, height, body, f"Figure of {result.analysis}", style=style)), drawing.n_layers)


def _columns(rows: Sequence[Sequence[Panel]]) -> list[list[Panel]]:
    return [[row[i] for row in rows if i < len(row)] for i in range(max(map(len, rows), default=0))]


def _heading(panel: Panel, width: float) -> tuple[list[str], list[str]]:
    name = svg.wrap_label(panel.name, width, 13) if panel.name else []
    return name, svg.wrap_label(panel.caption, width) if panel.caption else []


def _heading_height(panel: Panel, width: float) -> float:
    name, caption = _heading(panel, width)
    return 17.0 * len(name) + svg.LINE_HEIGHT * len(caption) + (8 if name or caption else 0)


def _panel(panel: Panel, x: float, y: float, heading: float, width: float) -> Iterator[Markup]:
    """The panel with its name and caption above; pictures of one row begin at the same height."""
    name, caption = _heading(panel, width)
    at = y + 10
    for line in name:
        yield svg.text(x, at, line, class_="name")
        at += 17
    for line in caption:
        yield svg.text(x, at, line, class_="muted")
        at += svg.LINE_HEIGHT
    transform = f"translate({x:.0f} {y + heading:.0f})"
    yield svg.group([panel.body], transform=transform, class_="panel", role="img", aria_label=panel.label)


def _facts(result: Result, drawing: Drawing) -> Iterator[str]:
    """Models and corpora, sample size and special-token policy, options, and how to read the marks."""
    yield from result.describe_inputs()
    special_tokens = str(result.provenance.get("special_tokens", "")).replace("`", "")
    yield " · ".join(filter(None, (result.sample_size, special_tokens)))
    if options := result.describe_options():
        yield f"Options: {options}"
    if drawing.notes:
        yield " · ".join(drawing.notes)
