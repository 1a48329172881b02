"""Figures as files: SVG, PNG, PDF, or a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.atomic_files import check_writable, write_atomically
from bertology.errors import Refusal
from bertology.html import render
from bertology.results.caption import CaptionStyle, caption_line, caption_sentences, figure_title
from bertology.results.drawing.figure import Figure, draw_result
from bertology.results.drawing.metadata import FigureMetadata
from bertology.results.drawing.selection import select_panels
from bertology.results.drawing.style import page_css
from bertology.results.html_table import html_table
from bertology.results.palette import Theme, css_variables

if TYPE_CHECKING:
    from bertology.results.result import Result

SUFFIXES = (".svg", ".png", ".pdf", ".html")
PNG_PPI = 300.0
"""Pixels per inch of PNG files."""
PAGE_PANEL_WIDTH = 350.0
"""Width of a panel on a page, in pixels: panels wrap, and a phone shows one beside none."""
MAX_ROWS = 2000


def check_figure_writable(path: Path) -> None:
    """Refuse, before any computation, a figure that cannot be written: unknown suffix, missing folder or package."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        ending = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise Refusal(
            f"{path} {ending}, which is not a format of figures",
            f"one of: {', '.join(SUFFIXES)}",
            "Give the file one of these suffixes",
        )
    check_writable(path)
    if suffix in (".png", ".pdf"):
        _converter()


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as an image in the format of the file's suffix."""
    match path.suffix.lower():
        case ".png":
            image = _converter().svg_to_png(figure.svg_in_points, ppi=PNG_PPI)
            return write_atomically(path, figure.metadata.add_to_png(image))
        case ".pdf":
            return write_atomically(path, figure.metadata.add_to_pdf(_converter().svg_to_pdf(figure.svg_in_points)))
        case _:
            return write_atomically(path, figure.svg.encode())


def figure_page(
    result: Result,
    themes: Sequence[Theme],
    panels: str | Sequence[str] = (),
    *,
    caption: CaptionStyle = "full",
    command: str = "",
) -> str:
    """The figure as a page with tooltips and its numbers; with two themes it follows the reader's preference."""
    selection = select_panels(result.data, panels)
    rows = result.rows()
    sentences = caption_sentences(result, selection.measures)
    text = {"none": "", "short": caption_line(result, selection.measures), "full": " ".join(sentences)}
    return render(
        "figure.html",
        title=figure_title(result),
        themes=[(theme, css_variables(theme)) for theme in themes],
        figure_css=Markup(page_css(themes)),
        drawing=draw_result(result, selection, PAGE_PANEL_WIDTH),
        caption=text[caption],
        metadata=FigureMetadata.of(result, command),
        table=html_table(rows[:MAX_ROWS]),
        n_rows=len(rows),
        max_rows=MAX_ROWS,
    )


def _converter():  # the type of an optional module
    """The package that renders SVG; a refusal if it is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise Refusal(
            "vl-convert-python is not installed, which renders PNG and PDF files",
            "the optional package for PNG and PDF figures",
            "Install it with: pip install 'bertology[figures]'; .svg and .html need no further package",
        ) from error
    return vl_convert
