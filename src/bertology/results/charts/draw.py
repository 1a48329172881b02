"""A result as an Altair chart: one drawing a shape, under who was asked, n and the special-token policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import altair as alt

from bertology.results.charts.arcs import arcs
from bertology.results.charts.curves import layer_curve, plain_curve
from bertology.results.charts.heads import head_grid
from bertology.results.charts.matrices import matrix
from bertology.results.charts.palette import PALETTES, Palette, Theme
from bertology.results.charts.panels import Drawing, data, wrapped
from bertology.results.charts.points import scatter, trajectory
from bertology.results.charts.strips import examples
from bertology.results.charts.tables import table
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


def draw(result: Result, theme: Theme) -> alt.ConcatChart:
    """The figure of a result."""
    palette = PALETTES[theme]
    drawing = _drawing(result.data, palette)
    lines = [line for fact in _facts(result) for line in wrapped(fact, drawing.width)]
    lines += wrapped(" · ".join(drawing.notes), drawing.width) if drawing.notes else []
    title = alt.TitleParams(
        result.analysis,
        subtitle=lines,
        fontSize=17,
        subtitleFontSize=12,
        subtitlePadding=5,
        offset=16,
        anchor="start",
        frame="bounds",
    )
    nothing = alt.Chart(data([{}])).mark_text(text="nothing to show", color=palette.soft)
    chart = alt.concat(*(drawing.panels or [nothing]), columns=drawing.columns, spacing=34, title=title)
    chart = chart.resolve_scale(yOffset="independent")
    if not drawing.together:
        chart = chart.resolve_scale(color="independent", strokeDash="independent")
    return chart.properties(description=" · ".join([result.analysis, *lines])).configure(**palette.config())


def _drawing(shape: Shape, palette: Palette) -> Drawing:
    match shape:
        case HeadGrid():
            return head_grid(shape, palette)
        case LayerCurve():
            return layer_curve(shape, palette)
        case Curve():
            return plain_curve(shape, palette)
        case Matrix():
            return matrix(shape, palette)
        case Table():
            return table(shape, palette)
        case Scatter():
            return scatter(shape, palette)
        case Trajectory():
            return trajectory(shape, palette)
        case Arcs():
            return arcs(shape, palette)
        case Examples():
            return examples(shape, palette)


def _facts(result: Result) -> Iterator[str]:
    """Who was asked, n and the policy on special tokens, and the options that change the numbers."""
    asked = [_who(role, summary) for role, summary in result.inputs.items() if isinstance(summary, Mapping)]
    yield from filter(None, asked)
    special = str(result.provenance.get("special_tokens", "policy not stated"))
    yield f"{result.rests_on} · special tokens: {special.replace('`', '')}"
    chosen = [f"{name}={value}" for name, value in result.options.items() if name != "seed" and value != ""]
    if chosen:
        yield f"options: {', '.join(chosen)}"


def _who(role: str, summary: Mapping[str, Any]) -> str:
    if "model" not in summary or "corpus" not in summary or role == "randomised":
        return ""
    name = f"{summary['model']['name']} on {summary['corpus']['name']}"
    return name if role == "recording" else f"{role}: {name}"
