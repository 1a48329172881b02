"""Edges over sentences: arcs above the words, as wide as they weigh; what was annotated below the words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import altair as alt

from bertology.results.charts.palette import Palette
from bertology.results.charts.panels import Drawing, Row, data
from bertology.results.charts.sentences import SIZE, SPACE, sheet, word_marks, word_width
from bertology.results.shapes import Arc, ArcDiagram, Arcs

WIDE, SMALLEST = 1300, 9.0
MARGIN, TALLEST = 12, 190.0
STEPS = 48
FOUND, GOLD = "found", "annotated"


def arcs(shape: Arcs, palette: Palette) -> Drawing:
    """One panel a sentence."""
    panels = [_panel(place, _laid_out(sentence), palette) for place, sentence in enumerate(shape.sentences)]
    notes = ["width of an arc: its weight beside the heaviest of the sentence", "an arc ends at its point"]
    if any(sentence.gold for sentence in shape.sentences):
        notes.append("below the words: what was annotated")
    return Drawing(panels, notes=tuple(notes), width=WIDE // 2)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A sentence in pixels: where its words stand, along which points its edges run."""

    width: float
    height: float
    size: float
    words: list[Row]
    lines: list[Row]
    ends: list[Row]


def _laid_out(sentence: ArcDiagram) -> _Layout:
    full = sum(word_width(word, SIZE) + SPACE for word in sentence.words)
    size = max(SMALLEST, SIZE * min(1.0, WIDE / max(full, 1.0)))
    centres, width = _centres(sentence.words, size)
    above, below = (max(map(_height, several), default=0.0) for several in (sentence.arcs, sentence.gold))
    room = size + 8
    heaviest = max((abs(arc.weight) for arc in sentence.arcs if math.isfinite(arc.weight)), default=0.0) or 1.0
    lines: list[Row] = []
    ends: list[Row] = []
    sides = ((FOUND, sentence.arcs, above + MARGIN, -1), (GOLD, sentence.gold, above + room + MARGIN, 1))
    for kind, several, base, sign in sides:
        for place, arc in enumerate(several):
            facts = _facts(arc, sentence, kind, heaviest) | {"edge": f"{kind} {place}"}
            points = _ellipse(centres, arc, base, sign)
            lines += [{**facts, "x": x, "y": y, "step": step} for step, (x, y) in enumerate(points)]
            middle, top = points[STEPS // 2]
            ends.append({**facts, "x": points[-1][0], "y": points[-1][1], "middle": middle, "top": top + sign * 6})
    line = above + MARGIN + room / 2
    words = [{"word": word, "x": x, "y": line} for word, x in zip(sentence.words, centres, strict=True)]
    return _Layout(width, above + room + below + MARGIN + 6, size, words, lines, ends)


def _panel(place: int, layout: _Layout, palette: Palette) -> alt.LayerChart:
    across, down = sheet(layout.width, layout.height)
    x, y = alt.X("x:Q", axis=None, scale=across), alt.Y("y:Q", axis=None, scale=down)
    over = (alt.X("middle:Q", axis=None, scale=across), alt.Y("top:Q", axis=None, scale=down))
    colour = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=[FOUND, GOLD], range=list(palette.series[:2])))
    fields = [("from", "from"), ("to", "to"), ("label", "label"), ("weight", "weight"), ("kind", " ")]
    tooltip = [alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields]
    thick = alt.StrokeWidth("thick:Q", scale=None, legend=None)
    paths = alt.Chart(data(layout.lines)).mark_line(opacity=0.75)
    ends = alt.Chart(data(layout.ends)).encode(x, colour, tooltip=tooltip)
    points = [
        ends.transform_filter(f"datum.kind === {kind!r}").mark_point(shape=shape, filled=True, size=30, opacity=1)
        for kind, shape in ((FOUND, "triangle-down"), (GOLD, "triangle-up"))
    ]
    layers = [
        paths.encode(x, y, colour, thick, alt.Detail("edge:N"), alt.Order("step:Q"), tooltip=tooltip),
        *(marks.encode(y) for marks in points),
        ends.mark_text(fontSize=9).encode(*over, alt.Text("label:N")),
        word_marks(layout.words, layout.size, palette).encode(x, y),
    ]
    title = f"sentence {place + 1}"
    return alt.LayerChart(layer=layers).properties(width=layout.width, height=layout.height, title=title)


def _centres(words: tuple[str, ...], size: float) -> tuple[list[float], float]:
    centres: list[float] = []
    at = 0.0
    for word in words:
        wide = word_width(word, size) + SPACE
        centres.append(at + wide / 2)
        at += wide
    return centres, at


def _height(arc: Arc) -> float:
    return min(TALLEST, 16.0 + 13.0 * max(1, abs(arc.end - arc.start)))


def _ellipse(centres: list[float], arc: Arc, base: float, sign: int) -> list[tuple[float, float]]:
    """From the start to the end; the ends stand a little apart so that arcs of a word do not hide one another."""
    side = 1 if arc.end >= arc.start else -1
    start, end = centres[arc.start] + 3 * side, centres[arc.end] - 3 * side
    if arc.start == arc.end:
        start, end = start - 9, end + 9
    middle, radius, height = (start + end) / 2, (start - end) / 2, _height(arc) - 8
    angles = [math.pi * step / STEPS for step in range(STEPS + 1)]
    return [(middle + radius * math.cos(angle), base + sign * height * math.sin(angle)) for angle in angles]


def _facts(arc: Arc, sentence: ArcDiagram, kind: str, heaviest: float) -> Row:
    known = math.isfinite(arc.weight)
    share = abs(arc.weight) / heaviest if kind == FOUND and known else 0.3
    weight = f"{arc.weight:.3g}" if known else "nothing to measure"
    words = {"from": sentence.words[arc.start], "to": sentence.words[arc.end]}
    return {**words, "label": arc.label, "weight": weight, "kind": kind, "thick": 0.7 + 3.3 * share}
