"""Sentences with arcs above and below the words, and example sentences with highlighted words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from markupsafe import Markup

from bertology.results.drawing import svg
from bertology.results.drawing.panels import Drawing, Panel, legend
from bertology.results.drawing.style import series_class
from bertology.results.shapes import Arc, ArcDiagram, Arcs, Examples, HighlightedSentence

WORD_SIZE, WORD_SPACE, MONOSPACE = 13, 11, 0.605
MARGIN, MAX_ARC_HEIGHT = 14, 190.0
WIDTH, LINE, PARAGRAPH = 760, 24, 16
CAPTION_LENGTH = 125
PREDICTED, GOLD = "predicted", "gold"


def draw_arcs(arcs: Arcs) -> Drawing:
    """One panel per sentence: predicted arcs above the words, gold arcs below."""
    panels = [_arc_panel(number, sentence) for number, sentence in enumerate(arcs.sentences, start=1)]
    notes = ["Arc width: weight relative to the largest in the sentence", "Arcs point to their end"]
    notes += ["Below the words: gold arcs"] if any(sentence.gold for sentence in arcs.sentences) else []
    return Drawing(panels, notes=tuple(notes))


def _word_width(word: str) -> float:
    return svg.text_width(word, WORD_SIZE, MONOSPACE)


def _arc_panel(number: int, sentence: ArcDiagram) -> Panel:
    centres, width = _word_centres(sentence.words)
    above, below = (max(map(_arc_height, arcs), default=0.0) for arcs in (sentence.arcs, sentence.gold))
    baseline = above + MARGIN
    weights = [abs(arc.weight) for arc in sentence.arcs if math.isfinite(arc.weight)]
    largest = max(weights, default=0.0) or 1.0
    parts: list[Markup] = []
    for arc in sentence.arcs:
        finite = math.isfinite(arc.weight)
        thickness = 0.8 + 3.2 * (abs(arc.weight) / largest if finite else 0.0)
        weight = f"{arc.weight:.3g}" if finite else svg.NOT_MEASURED
        parts += _arc(sentence, arc, centres, baseline, -1, thickness, f"{PREDICTED}, weight {weight}")
    for arc in sentence.gold:
        parts += _arc(sentence, arc, centres, baseline + WORD_SIZE + 8, 1, 1.6, GOLD)
    words = zip(sentence.words, centres, strict=True)
    parts += [svg.text(x, baseline + WORD_SIZE, word, anchor="middle", class_="word") for word, x in words]
    height = baseline + WORD_SIZE + 8 + below + MARGIN
    label = f"Sentence {number}: {' '.join(sentence.words)}"
    return Panel(f"Sentence {number}", "", width, height, Markup().join(parts), label)


def _word_centres(words: tuple[str, ...]) -> tuple[list[float], float]:
    centres: list[float] = []
    x = 0.0
    for word in words:
        width = _word_width(word) + WORD_SPACE
        centres.append(x + width / 2)
        x += width
    return centres, x


def _arc_height(arc: Arc) -> float:
    return min(MAX_ARC_HEIGHT, 16.0 + 13.0 * max(1, abs(arc.end - arc.start)))


def _arc(
    sentence: ArcDiagram, arc: Arc, centres: list[float], base: float, sign: int, thickness: float, description: str
) -> Iterator[Markup]:
    """Half an ellipse with an arrowhead at its end; ends stand a little apart so that arcs of a word do not overlap."""
    side = 1 if arc.end >= arc.start else -1
    start, end = centres[arc.start] + 3 * side, centres[arc.end] - 3 * side
    if arc.start == arc.end:
        start, end = start - 9, end + 9
    radius, height = abs(start - end) / 2, _arc_height(arc) - 8
    sweep = int((end > start) == (sign < 0))
    curve = f"M{start:.1f} {base:.1f}A{radius:.1f} {height:.1f} 0 0 {sweep} {end:.1f} {base:.1f}"
    words = f"{sentence.words[arc.start]} → {sentence.words[arc.end]}"
    tip = "\n".join(filter(None, (words, arc.label, description)))
    arrow = f"{end - 3:.1f},{base + sign * 5:.1f} {end + 3:.1f},{base + sign * 5:.1f} {end:.1f},{base:.1f}"
    marks = [
        svg.element("path", d=curve, class_="line", stroke_width=None, style=f"stroke-width: {thickness:.1f}", tip=tip),
        svg.element("polygon", points=arrow, class_="point"),
    ]
    yield svg.group(marks, class_="arc-predicted" if sign < 0 else "arc-gold")
    if arc.label:
        y = base + sign * (height + 4) + (6 if sign > 0 else 0)
        yield svg.text((start + end) / 2, y, arc.label, anchor="middle", class_="tiny")


def draw_examples(examples: Examples) -> Drawing:
    """All examples below one another, each with caption and score; highlighted words are shaded by kind."""
    kinds = sorted({kind for example in examples.examples for kind in example.highlights})
    if not examples.examples:
        return Drawing(())
    parts: list[Markup] = []
    y = 0.0
    for example in examples.examples:
        lines, y = _example(example, kinds, y)
        parts += lines
    label = f"{len(examples.examples)} example sentences"
    panel = Panel("", "", WIDTH, y, Markup().join(parts), label)
    return Drawing([panel], legend=legend(kinds, WIDTH, lines=False, same_marker=True) if kinds else None)


def _example(example: HighlightedSentence, kinds: list[str], y: float) -> tuple[list[Markup], float]:
    """The caption and the words, broken into lines, and the height below them."""
    score = f"score {example.score:.3g}" if math.isfinite(example.score) else ""
    parts: list[Markup] = []
    for line in textwrap.wrap(" · ".join(filter(None, (example.caption, score))), CAPTION_LENGTH):
        parts.append(svg.text(0, y + LINE / 2 + 4, line, class_="muted"))
        y += LINE * 0.75
    x = 4.0
    for index, word in enumerate(example.words):
        width = _word_width(word)
        if x > 4 and x + width > WIDTH:
            x, y = 4.0, y + LINE
        marked = [kind for kind in kinds if index in example.highlights.get(kind, ())]
        thickness = (LINE - 3) / max(1, len(marked))
        for position, kind in enumerate(marked):  # a word with two highlights shows both colours, one above the other
            top = y + 1.5 + position * thickness
            box = svg.element(
                "rect", x=x - 3, y=top, width=width + 6, height=thickness, rx=3, class_="highlight", tip=kind
            )
            parts.append(svg.group([box], class_=series_class(kinds.index(kind))))
        parts.append(svg.text(x, y + LINE / 2 + 5, word, class_="word"))
        x += width + WORD_SPACE
    return parts, y + LINE + PARAGRAPH
