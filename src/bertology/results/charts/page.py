"""A figure as one HTML page that holds everything it needs and reaches for nothing: Vega, the figure, its numbers.

With both themes the page follows the browser's. Where a figure has something to choose, such as the layer of a
trajectory, the page has it as an input below the drawing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from bertology.results.charts.palette import PALETTES, Theme
from bertology.results.html_table import html_table

if TYPE_CHECKING:
    from bertology.results.result import Result

MENU = {"export": True, "source": False, "compiled": False, "editor": False}
# The browser itself refuses whatever the page might try to fetch; Vega compiles expressions, hence unsafe-eval.
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"
ROWS = 2000
STYLE = """
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; }
#figure { overflow-x: auto; display: block; } #figure svg { max-width: max(100%, 680px); height: auto; }
.vega-bindings { padding: 4px 16px; position: sticky; left: 0; } .vega-bind label { display: flex; gap: .6rem;
  align-items: center; flex-wrap: wrap; } .vega-bind input { width: min(420px, 70vw); }
details { padding: 4px 16px 24px; } summary { cursor: pointer; } .scroll { overflow-x: auto; margin-top: .5rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .15rem .7rem .15rem 0; white-space: nowrap; font-weight: 400; }
td:first-child, th:first-child, .word { text-align: left; }
"""
SHOW = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const show = async () => {
  const theme = (dark.matches && figures.dark) || !figures.light ? "dark" : "light";
  const { view } = await vegaEmbed("#figure", figures[theme], settings);
  Object.assign(document.documentElement.dataset, { theme, ready: "yes" });
  return view;
};
dark.addEventListener("change", show);
await show();
"""


def page(result: Result, name: str, themes: Sequence[Theme]) -> str:
    """Vega with the figure's specification, inline, with tooltips, a menu to save the drawing, and its numbers."""
    settings = {"mode": "vega-lite", "renderer": "svg", "actions": MENU, "downloadFileName": name, "logLevel": 1}
    figures = {theme: specification(result, theme) for theme in themes}
    program = f"const figures = {_inline(figures)}, settings = {_inline(settings)};{SHOW}"
    return (
        f'<!doctype html><html lang="en" data-theme="{themes[0]}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(result.analysis)}</title>'
        f"<style>{_papers(themes)}{STYLE}</style></head><body><main id=figure></main>{_numbers(result)}"
        f'<script type="module">{_library(vega_lite())}{program}</script></body></html>'
    )


def specification(result: Result, theme: Theme) -> dict[str, object]:
    """The figure as Vega-Lite, without the address of its schema."""
    from bertology.results.charts.draw import draw

    made = draw(result, theme).to_dict()
    made.pop("$schema", None)
    return made


def _papers(themes: Sequence[Theme]) -> str:
    return "".join(
        f"[data-theme={theme}] {{ color-scheme: {theme}; background: {PALETTES[theme].paper}; "
        f"color: {PALETTES[theme].ink}; }} "
        for theme in themes
    )


def _numbers(result: Result) -> str:
    rows = result.rows()
    cut = f"<p>The first {ROWS} of {len(rows)} rows; to_pandas() has all.</p>" if len(rows) > ROWS else ""
    return f"<details><summary>Numbers</summary>{cut}{html_table(rows[:ROWS])}</details>"


def _inline(value: object) -> str:
    """JSON that may stand inside a script: no word of a sentence can end it."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


@cache
def _library(version: str) -> str:
    """Vega-Lite and what it rests on; packing it takes seconds."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)


def vega_lite() -> str:
    """The Vega-Lite that Altair writes for, or the newest that the converter has."""
    import altair
    import vl_convert

    written = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    return written if written in known else known[-1]
