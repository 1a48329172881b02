"""Figures as files: SVG, PNG, or one HTML page that holds everything it needs and reaches for nothing."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.errors import Refusal
from bertology.results import whole_file
from bertology.results.charts.page import page, specification, vega_lite
from bertology.results.charts.palette import Theme

if TYPE_CHECKING:
    from bertology.results.result import Result

SUFFIXES = (".svg", ".png", ".html")
PNG_SCALE = 2.0


def require_figures() -> None:
    """Refuse where the packages that draw are not installed."""
    for module in ("altair", "vl_convert"):
        try:
            import_module(module)
        except ImportError as error:
            raise Refusal(
                f"{module} is not installed, which draws figures",
                "the optional packages for figures",
                "Install them with: pip install 'bertology[figures]'",
            ) from error


def require_place(path: Path) -> None:
    """Refuse, before anything is computed, a file that could not be written: its suffix, its folder, what draws."""
    if path.suffix.lower() not in SUFFIXES:
        found = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
        raise Refusal(
            f"{path} {found}, which is no kind of figure",
            f"one of: {', '.join(SUFFIXES)}",
            "Give the file one of these suffixes",
        )
    whole_file.require_place(path)
    require_figures()


def save(result: Result, path: Path, theme: Theme) -> Path:
    """Write the figure beside its place and move it there whole, so that no half-written file is ever left."""
    require_place(path)
    content = _content(result, path.suffix.lower(), path.stem, theme)
    return whole_file.write_whole(path, content)


def svg(result: Result, theme: Theme) -> str:
    """The figure as one SVG drawing."""
    import vl_convert

    return vl_convert.vegalite_to_svg(specification(result, theme), vl_version=vega_lite(), allowed_base_urls=[])


def _content(result: Result, suffix: str, name: str, theme: Theme) -> bytes:
    import vl_convert

    if suffix == ".svg":
        return svg(result, theme).encode()
    if suffix == ".png":
        made = specification(result, theme)
        return vl_convert.vegalite_to_png(made, vl_version=vega_lite(), scale=PNG_SCALE, allowed_base_urls=[])
    return page(result, name, [theme]).encode()
