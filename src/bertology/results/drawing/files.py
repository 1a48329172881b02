"""Figures as files: SVG, PNG, PDF, or a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from bertology.atomic_files import check_writable, write_atomically
from bertology.errors import Refusal
from bertology.html import render
from bertology.results.drawing.figure import draw_figure
from bertology.results.drawing.style import page_css
from bertology.results.html_table import html_table
from bertology.results.palette import Theme, css_variables

if TYPE_CHECKING:
    from bertology.results.result import Result

SUFFIXES = (".svg", ".png", ".pdf", ".html")
PNG_PPI = 300.0
"""Pixels per inch of PNG files; a unit of the drawing is a point, 1/72 inch."""
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
        _convert_svg("<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>", suffix)


def save_figure(result: Result, path: Path, theme: Theme) -> Path:
    """Write the figure of a result in the format of the file's suffix."""
    check_figure_writable(path)
    suffix = path.suffix.lower()
    if suffix == ".html":
        return write_atomically(path, figure_page(result, [theme]).encode())
    svg = draw_figure(result, theme).svg
    return write_atomically(path, svg.encode() if suffix == ".svg" else _convert_svg(svg, suffix))


def figure_page(result: Result, themes: Sequence[Theme]) -> str:
    """The figure as a page with tooltips and its numbers; with two themes it follows the reader's preference."""
    figure = draw_figure(result, None)
    rows = result.rows()
    return render(
        "figure.html",
        title=result.analysis,
        themes=[(theme, css_variables(theme)) for theme in themes],
        figure_css=Markup(page_css(themes)),
        figure=figure,
        table=html_table(rows[:MAX_ROWS]),
        n_rows=len(rows),
        max_rows=MAX_ROWS,
    )


def _convert_svg(svg: str, suffix: str) -> bytes:
    """The image as PNG or PDF."""
    try:
        import vl_convert
    except ImportError as error:
        raise Refusal(
            "vl-convert-python is not installed, which renders PNG and PDF files",
            "the optional package for PNG and PDF figures",
            "Install it with: pip install 'bertology[figures]'; .svg and .html need no further package",
        ) from error
    return vl_convert.svg_to_pdf(svg) if suffix == ".pdf" else vl_convert.svg_to_png(svg, ppi=PNG_PPI)
