"""A result as one image: its panels, and below them a caption with model, corpus, sample size and intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.errors import Refusal
from bertology.results.caption import CaptionStyle, caption_line, caption_sentences, figure_title
from bertology.results.drawing import svg
from bertology.results.drawing.curves import draw_curve, draw_layer_curve
from bertology.results.drawing.grids import draw_head_grid
from bertology.results.drawing.length import POINTS_PER_UNIT, parse_width
from bertology.results.drawing.matrices import draw_matrix
from bertology.results.drawing.metadata import FigureMetadata
from bertology.results.drawing.panels import DEFAULT_WIDTH, PANEL_GAP, Drawing, Panel
from bertology.results.drawing.points import draw_scatter, draw_trajectory
from bertology.results.drawing.selection import PanelSelection, select_panels
from bertology.results.drawing.sentences import draw_arcs, draw_examples
from bertology.results.drawing.style import figure_css
from bertology.results.drawing.tables import draw_table
from bertology.results.illustrations import Arcs, Examples, Scatter, Trajectory
from bertology.results.palette import Theme
from bertology.results.results import model_name
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Shape, Table

if TYPE_CHECKING:
    from bertology.results.result import Result

PADDING, ROW_GAP = 4.0, 18.0
FONT_POINTS = 8.0
"""Size of text on paper; titles are larger by half a point, small numbers smaller by as much."""
UNITS_PER_POINT = svg.FONT_SIZE / FONT_POINTS


@dataclass(frozen=True, slots=True)
class Figure:
    """The drawing of a result as an SVG image of a physical size; notebooks show it."""

    width: float
    """In points, 1/72 inch, as the height."""
    height: float
    body: Markup = field(repr=False)
    style: str = field(repr=False)
    metadata: FigureMetadata = field(repr=False)
    n_layers: int = 0

    @property
    def svg(self) -> str:
        """The image; its size is in millimetres."""
        per_mm = POINTS_PER_UNIT["mm"]
        return self._document(f"{self.width / per_mm:.2f}mm", f"{self.height / per_mm:.2f}mm")

    @property
    def svg_in_points(self) -> str:
        """The image with its size in points, for programs that read a unit as a point."""
        return self._document(f"{self.width:.2f}", f"{self.height:.2f}")

    def _document(self, width: str, height: str) -> str:
        units = self.width * UNITS_PER_POINT, self.height * UNITS_PER_POINT
        label = f"Figure: {self.metadata.title}"
        metadata = self.metadata.as_svg()
        return str(svg.document(*units, self.body, label, style=self.style, size=(width, height), metadata=metadata))

    def _repr_svg_(self) -> str:
        return self.svg


def draw_shape(
    shape: Shape,
    measures: Collection[str] = (),
    width: float = DEFAULT_WIDTH,
    *,
    rows: Collection[str] = (),
    numbers: Collection[int] = (),
    model_name: str = "",
) -> Drawing:
    """The panels of a shape for a width in units of the drawing.

    Of a shape with measures, only the given `measures` if it has them, and of a table or matrix only the given `rows`.
    `numbers` selects sentences. `model_name` is written at lines and in keys, else "model".
    """
    match shape:
        case HeadGrid():
            return draw_head_grid(shape, measures, width)
        case LayerCurve():
            return draw_layer_curve(shape, measures, width, model_name)
        case Curve():
            return draw_curve(shape, measures, width, model_name)
        case Matrix():
            return draw_matrix(shape, measures, width, rows)
        case Table():
            return draw_table(shape, measures, width, model_name, rows)
        case Scatter():
            return draw_scatter(shape, width)
        case Trajectory():
            return draw_trajectory(shape, width)
        case Arcs():
            return draw_arcs(shape, width, numbers)
        case Examples():
            return draw_examples(shape, width, numbers)


def draw_result(result: Result, selection: PanelSelection, width: float = DEFAULT_WIDTH) -> Drawing:
    """The selected panels of a result, with the name of its model."""
    return draw_shape(
        result.data,
        selection.measures,
        width,
        rows=selection.rows,
        numbers=selection.numbers,
        model_name=svg.truncate_label(model_name(result)),
    )


def draw_figure(
    result: Result,
    theme: Theme | None = "light",
    panels: str | Sequence[str] = (),
    *,
    width: str | None = None,
    caption: CaptionStyle = "full",
    command: str = "",
) -> Figure:
    """The figure of a result, or of some of its panels; without a theme it has no style, for pages that bring it.

    `width` is a length such as `85mm`; text keeps its size, and panels are arranged to fit. `command` goes into the
    metadata, else a command that is made from the inputs of the result.
    """
    selection = select_panels(result.data, panels)
    units = DEFAULT_WIDTH if width is None else parse_width(width) * UNITS_PER_POINT
    drawing = draw_result(result, selection, units - 2 * PADDING)
    rows = [drawing.panels[i : i + drawing.columns] for i in range(0, len(drawing.panels), drawing.columns)]
    widths = [max(panel.width for panel in column) for column in _columns(rows)]
    needed = sum(widths) + PANEL_GAP * max(0, len(widths) - 1) + 2 * PADDING
    if width is not None and needed > units + 1:
        least = needed / UNITS_PER_POINT / POINTS_PER_UNIT["mm"]
        raise Refusal(
            f"The figure does not fit the width {width}: cells and names would be too small to read",
            f"at least {least:.0f} mm",
            f"Give --width {least:.0f}mm or more",
        )
    total = max(units, needed)
    title = figure_title(result) if caption == "full" else ""
    parts, height = _arrange(
        drawing, rows, widths, svg.wrap_label(title, (total - 2 * PADDING) / svg.BOLD, svg.TITLE_SIZE)
    )
    lines = _caption(result, selection, drawing, caption)
    for line in [line for text in lines for line in svg.wrap_label(text, total - 2 * PADDING, svg.SMALL_SIZE)]:
        parts.append(svg.text(0, height + 9, line, class_="muted small"))
        height += 12.5
    height += 2 * PADDING
    background = svg.element("rect", width="100%", height="100%", class_="background")
    body = background + svg.group(parts, transform=f"translate({PADDING:g} {PADDING:g})")
    style = "" if theme is None else figure_css(theme)
    size = total / UNITS_PER_POINT, height / UNITS_PER_POINT
    return Figure(*size, body, style, FigureMetadata.of(result, command), drawing.n_layers)


def _arrange(
    drawing: Drawing, rows: Sequence[Sequence[Panel]], widths: Sequence[float], title: Sequence[str]
) -> tuple[list[Markup], float]:
    """The title, the panels in rows and the key, and the height below them."""
    parts: list[Markup] = []
    y = 0.0
    for line in filter(None, title):
        parts.append(svg.text(0, y + 11, line, class_="title"))
        y += 15
    y += 6 if y else 0
    for row in rows:
        heading = max(_heading_height(panel, w) for panel, w in zip(row, widths, strict=False))
        for index, panel in enumerate(row):
            x = sum(widths[:index]) + PANEL_GAP * index
            parts += _panel(panel, x, y, heading, widths[index])
        y += heading + max(panel.height for panel in row) + ROW_GAP
    if drawing.legend is not None:
        parts.append(svg.group([drawing.legend.body], transform=f"translate(0 {y - 6:.0f})", class_="legend"))
        y += drawing.legend.height
    if not rows:
        parts.append(svg.text(0, y + svg.LINE_HEIGHT, "No data", class_="muted"))
        y += 2 * svg.LINE_HEIGHT
    return parts, y - (ROW_GAP - 8 if rows and drawing.legend is None else 0)


def _columns(rows: Sequence[Sequence[Panel]]) -> list[list[Panel]]:
    return [[row[i] for row in rows if i < len(row)] for i in range(max(map(len, rows), default=0))]


def _heading(panel: Panel, width: float) -> tuple[list[str], list[str]]:
    name = svg.wrap_label(panel.name, width / svg.BOLD, svg.NAME_SIZE) if panel.name else []
    caption = [line for part in panel.caption.splitlines() for line in svg.wrap_label(part, width, svg.SMALL_SIZE)]
    return name, caption


def _heading_height(panel: Panel, width: float) -> float:
    name, caption = _heading(panel, width)
    return 14.0 * len(name) + 12.0 * len(caption) + (6 if name or caption else 0)


def _panel(panel: Panel, x: float, y: float, heading: float, width: float) -> Iterator[Markup]:
    """The panel with its name and caption above; names and pictures of one row begin at the same height."""
    name, caption = _heading(panel, width)
    at = y + 10
    for line in name:
        yield svg.text(x, at, line, class_="name")
        at += 14
    for line in caption:
        yield svg.text(x, at, line, class_="muted small")
        at += 12
    transform = f"translate({x:.1f} {y + heading:.1f})"
    yield svg.group([panel.body], transform=transform, class_="panel", role="img", aria_label=panel.label)


def _caption(result: Result, selection: PanelSelection, drawing: Drawing, style: CaptionStyle) -> list[str]:
    """The caption as paragraphs: nothing, one line, or sentences and how to read the marks."""
    if style == "none":
        return []
    if style == "short":
        return [caption_line(result, selection.measures)]
    notes = [f"{note}." for note in drawing.notes]
    return [" ".join([*caption_sentences(result, selection.measures), *notes])]
