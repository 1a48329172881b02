"""Examples as strips of words: each under its caption and score, with what is marked shaded in the mark's colour."""

from __future__ import annotations

import textwrap

import altair as alt

from bertology.results.charts.palette import Palette
from bertology.results.charts.panels import Drawing, Row, data, number
from bertology.results.charts.sentences import SIZE, SPACE, sheet, word_marks, word_width
from bertology.results.shapes import Example, Examples

WIDTH, LINE, BELOW = 760, 24, 16
CAPTION = 125


def examples(shape: Examples, palette: Palette) -> Drawing:
    """All examples under one another."""
    strip = _Strip(sorted({kind for example in shape.examples for kind in example.marked}))
    for example in shape.examples:
        strip.add(example)
    return Drawing([strip.panel(palette)] if strip.words else [], width=WIDTH)


class _Strip:
    """Words laid out line by line, growing downwards."""

    def __init__(self, kinds: list[str]) -> None:
        self.kinds = kinds
        self.words: list[Row] = []
        self.marks: list[Row] = []
        self.captions: list[Row] = []
        self.at = 0.0

    def add(self, example: Example) -> None:
        """The caption and score, then the words, broken into lines."""
        score = number(example.score) if example.score is not None else None
        head = " · ".join(filter(None, (example.caption, f"score {score:.3g}" if score is not None else "")))
        for line in textwrap.wrap(head, CAPTION):
            self.captions.append({"text": line, "y": self.at + LINE / 2})
            self.at += LINE * 0.75
        along = 0.0
        for place, word in enumerate(example.words):
            wide = word_width(word, SIZE)
            if along and along + wide > WIDTH:
                along, self.at = 0.0, self.at + LINE
            kinds = [kind for kind in self.kinds if place in example.marked.get(kind, ())]
            self._put(word, along, wide, kinds, head)
            along += wide + SPACE
        self.at += LINE + BELOW

    def _put(self, word: str, along: float, wide: float, kinds: list[str], head: str) -> None:
        facts: Row = {"word": word, "marked": ", ".join(kinds), "caption": head}
        self.words.append({**facts, "x": along + wide / 2, "y": self.at + LINE / 2})
        thick = (LINE - 3) / max(1, len(kinds))
        for place, kind in enumerate(kinds):  # a word marked twice shows both colours, one above the other
            top = self.at + 1.5 + place * thick
            box = {"x": along - 3, "x2": along + wide + 3, "y": top, "y2": top + thick}
            self.marks.append({**facts, "kind": kind, **box})

    def panel(self, palette: Palette) -> alt.LayerChart:
        """Boxes, words and captions on one sheet."""
        height = self.at - BELOW
        across, down = sheet(WIDTH, height)
        x, y = alt.X("x:Q", axis=None, scale=across), alt.Y("y:Q", axis=None, scale=down)
        tooltip = [alt.Tooltip("word:N"), alt.Tooltip("marked:N"), alt.Tooltip("caption:N", title=" ")]
        shade = alt.Color(
            "kind:N",
            scale=alt.Scale(domain=self.kinds, range=palette.told_apart(len(self.kinds))),
            legend=alt.Legend(title=None, orient="top", symbolType="square", symbolOpacity=0.45),
        )
        boxes = alt.Chart(data(self.marks)).mark_rect(opacity=0.35, cornerRadius=3)
        captions = alt.Chart(data(self.captions)).mark_text(align="left", fontSize=11, color=palette.soft)
        layers = [
            boxes.encode(x, y, alt.X2("x2:Q"), alt.Y2("y2:Q"), shade, tooltip=tooltip),
            word_marks(self.words, SIZE, palette).encode(x, y, tooltip=tooltip),
            captions.encode(y, alt.Text("text:N"), x=alt.value(-3)),
        ]
        return alt.LayerChart(layer=layers).properties(width=WIDTH, height=height)
