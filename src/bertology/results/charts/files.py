"""Figures as files: SVG, PNG, or one HTML page that holds everything it needs and reaches for nothing."""

from __future__ import annotations

import json
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.errors import Refusal
from bertology.results.charts.palette import PALETTES, Theme

if TYPE_CHECKING:
    from bertology.results.result import Result

SUFFIXES = (".svg", ".png", ".html")
PNG_SCALE = 2.0
MENU = {"export": True, "source": False, "compiled": False, "editor": False}
# The browser itself refuses whatever the page might try to fetch; Vega compiles expressions, hence unsafe-eval.
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


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
    if not path.parent.is_dir():
        raise Refusal(f"There is no folder {path.parent}", "a file in a folder that exists", "Choose another place")
    require_figures()


def save(result: Result, path: Path, theme: Theme) -> Path:
    """Write the figure beside its place and move it there whole, so that no half-written file is ever left."""
    require_place(path)
    content = _content(result, path.suffix.lower(), path.stem, theme)
    temporary = path.with_name(f".{path.name}.partial")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Refusal(
            f"{path} cannot be written ({error.strerror})", "a file in a folder that exists", "Choose another place"
        ) from error
    return path


def svg(result: Result, theme: Theme) -> str:
    """The figure as one SVG drawing."""
    import vl_convert

    return vl_convert.vegalite_to_svg(_specification(result, theme), vl_version=_version(), allowed_base_urls=[])


def _content(result: Result, suffix: str, name: str, theme: Theme) -> bytes:
    import vl_convert

    if suffix == ".svg":
        return svg(result, theme).encode()
    if suffix == ".png":
        specification = _specification(result, theme)
        return vl_convert.vegalite_to_png(specification, vl_version=_version(), scale=PNG_SCALE, allowed_base_urls=[])
    return _page(result, name, theme).encode()


def _page(result: Result, name: str, theme: Theme) -> str:
    """Vega with the figure's specification, inline, with tooltips and a menu to save the drawing."""
    import vl_convert

    settings = {"mode": "vega-lite", "renderer": "svg", "actions": MENU, "downloadFileName": name}
    drawn = f'vegaEmbed("#figure", {_inline(_specification(result, theme))}, {_inline(settings)});'
    palette = PALETTES[theme]
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _version())
    style = f"body {{ margin: 0; background: {palette.paper}; color: {palette.ink}; }} #figure {{ overflow-x: auto; }}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(result.analysis)}</title>'
        f'<style>{style}</style><script type="module">{library}{drawn}</script></head>'
        f'<body><div id="figure"></div></body></html>'
    )


def _specification(result: Result, theme: Theme) -> dict[str, object]:
    from bertology.results.charts.draw import draw

    specification = draw(result, theme).to_dict()
    specification.pop("$schema", None)
    return specification


def _inline(value: object) -> str:
    """JSON that may stand inside a script: no word of a sentence can end it."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _version() -> str:
    """The Vega-Lite that Altair writes for, or the newest that the converter has."""
    import altair
    import vl_convert

    written = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    return written if written in known else known[-1]
