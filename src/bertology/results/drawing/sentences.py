"""Sentences with arcs between their words, and example sentences with highlighted words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bertology.results.drawing import svg
from bertology.results.drawing.panels import DEFAULT_WIDTH, Drawing, Panel, legend
from bertology.results.drawing.style import SeriesStyle, series_class
from bertology.results.illustrations import Arc, ArcDiagram, Arcs, Examples, HighlightedSentence

WORD_SPACE, MIN_WORD_STEP, WORD_LINE = 9.0, 26.0, 17.0
MARGIN, ARC_STEP, MAX_ARC_HEIGHT = 6.0, 11.0, 120.0
LINE, PARAGRAPH = 18.0, 12.0
PREDICTED, GOLD = "predicted", "gold"


def draw_arcs(arcs: Arcs, width: float = DEFAULT_WIDTH, numbers: Collection[int] = ()) -> Drawing:
    """One panel per sentence: predicted arcs on one side of the words, gold arcs on the other.

    Words stand beside one another, or below one another if the sentence is wider than the figure.
    """
    chosen = [(number, sentence) for number, sentence in enumerate(arcs.sentences, start=1)]
    chosen = [pair for pair in chosen if pair[0] in numbers] or chosen
    panels = [_arc_panel(number, sentence, arcs.directed, width) for number, sentence in chosen]
    has_gold = any(sentence.gold for _, sentence in chosen)
    notes = ["Solid: predicted and in the gold tree; dashed: not in it"] if has_gold else []
    notes += ["Gold arcs: below the words, or to their right"] if has_gold else []
    notes += ["Width: weight relative to the largest in the sentence"] if arcs.directed else []
    return Drawing(panels, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Words:
    """Positions of words along the sentence, which runs across or down the panel."""

    centres: Sequence[float]
    length: float
    is_vertical: bool
    label_width: float

    def reach(self, arc: Arc) -> float:
        """How far an arc stands off the words."""
        step = ARC_STEP * 0.75 if self.is_vertical else ARC_STEP
        return min(MAX_ARC_HEIGHT, 8.0 + step * max(1, abs(arc.end - arc.start)))


def _layout_words(words: Sequence[str], width: float) -> _Words:
    centres: list[float] = []
    x = 0.0
    for word in words:
        step = max(MIN_WORD_STEP, svg.text_width(word) + WORD_SPACE)
        centres.append(x + step / 2)
        x += step
    if x <= width:
        return _Words(centres, x, False, 0.0)
    label_width = min(width / 2, max(map(svg.text_width, words), default=0.0)) + 10
    down = [WORD_LINE * (index + 0.5) for index in range(len(words))]
    return _Words(down, WORD_LINE * len(words), True, label_width)


def _arc_panel(number: int, sentence: ArcDiagram, directed: bool, width: float) -> Panel:
    words = _layout_words(sentence.words, width)
    before, after = (max(map(words.reach, arcs), default=0.0) for arcs in (sentence.arcs, sentence.gold))
    first = before + MARGIN
    second = first + (words.label_width if words.is_vertical else WORD_LINE)
    gold = {_edge(arc, directed) for arc in sentence.gold}
    predicted = {_edge(arc, directed) for arc in sentence.arcs}
    weights = [abs(arc.weight) for arc in sentence.arcs if math.isfinite(arc.weight)]
    largest = max(weights, default=0.0) or 1.0
    parts: list[Markup] = []
    labels = _ArcLabels()
    for arc in sentence.arcs:
        agrees = not gold or _edge(arc, directed) in gold
        finite = math.isfinite(arc.weight)
        thickness = 0.8 + 2.4 * (abs(arc.weight) / largest if finite else 0.0) if directed else 1.6
        weight = f"{arc.weight:.3g}" if finite else svg.NOT_MEASURED
        verdict = (", in the gold tree" if agrees else ", not in the gold tree") if gold else ""
        style = _ArcStyle("arc-agrees" if agrees else "rule-baseline", thickness, not agrees, directed)
        parts += _arc(sentence, arc, words, first, -1, style, f"{PREDICTED}{verdict}, weight {weight}", labels)
    for arc in sentence.gold:
        is_predicted = _edge(arc, directed) in predicted
        style = _ArcStyle("arc-gold", 1.3, not is_predicted, directed)
        parts += _arc(
            sentence, arc, words, second, 1, style, f"{GOLD}, {'found' if is_predicted else 'not found'}", labels
        )
    parts += _words(sentence.words, words, first)
    across = second + after + MARGIN
    label = f"Sentence {number}: {' '.join(sentence.words)}"
    score = f"{len(predicted & gold)} of {len(gold)} gold edges found" if gold else ""
    size = (across, words.length) if words.is_vertical else (words.length, across)
    return Panel(f"Sentence {number}", score, *size, Markup().join(parts), label)


def _words(words: Sequence[str], layout: _Words, base: float) -> Iterator[Markup]:
    for word, centre in zip(words, layout.centres, strict=True):
        if layout.is_vertical:
            shown = svg.fit_label(word, layout.label_width - 8)
            x = base + layout.label_width / 2
            yield svg.text(x, centre + 4, shown, anchor="middle", class_="word", tip=word if shown != word else "")
        else:
            yield svg.text(centre, base + 12, word, anchor="middle", class_="word")


def _edge(arc: Arc, directed: bool) -> tuple[int, int]:
    """What identifies an arc: its ends, in order if arcs have a direction."""
    return (arc.start, arc.end) if directed else (min(arc.start, arc.end), max(arc.start, arc.end))


@dataclass(frozen=True, slots=True)
class _ArcStyle:
    class_: str
    thickness: float
    is_dashed: bool
    has_arrow: bool


class _ArcLabels:
    """Labels of arcs, left out where they would overlap an earlier one; tooltips have them all."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, float, float]] = []

    def label(self, x: float, y: float, label: str) -> list[Markup]:
        half = svg.text_width(label, svg.SMALL_SIZE) / 2 + 1
        if any(x - half < end and start < x + half and abs(y - height) < 10 for start, end, height in self.taken):
            return []
        self.taken.append((x - half, x + half, y))
        return [svg.text(x, y, label, anchor="middle", class_="small muted halo quiet")]


def _arc(
    sentence: ArcDiagram,
    arc: Arc,
    words: _Words,
    base: float,
    sign: int,
    style: _ArcStyle,
    description: str,
    labels: _ArcLabels,
) -> Iterator[Markup]:
    """Half an ellipse; its ends stand a little apart so that arcs of a word do not overlap."""
    side = 1 if arc.end >= arc.start else -1
    start, end = words.centres[arc.start] + 3 * side, words.centres[arc.end] - 3 * side
    if arc.start == arc.end:
        start, end = start - 9, end + 9
    radius, reach = abs(start - end) / 2, words.reach(arc) - 6
    sweep = int((end > start) == (sign < 0))
    if words.is_vertical:
        curve = f"M{base:.1f} {start:.1f}A{reach:.1f} {radius:.1f} 0 0 {1 - sweep} {base:.1f} {end:.1f}"
        tip_points = ((base + sign * 5, end - 2.5), (base + sign * 5, end + 2.5), (base, end))
    else:
        curve = f"M{start:.1f} {base:.1f}A{radius:.1f} {reach:.1f} 0 0 {sweep} {end:.1f} {base:.1f}"
        tip_points = ((end - 2.5, base + sign * 5), (end + 2.5, base + sign * 5), (end, base))
    joint = "→" if style.has_arrow else "–"
    names = f"{sentence.words[arc.start]} {joint} {sentence.words[arc.end]}"
    tip = "\n".join(filter(None, (names, arc.label, description)))
    line = svg.element(
        "path",
        d=curve,
        class_="line",
        style=f"stroke-width: {style.thickness:.1f}",
        stroke_dasharray="3 2" if style.is_dashed else None,
        tip=tip,
    )
    arrow = " ".join(f"{x:.1f},{y:.1f}" for x, y in tip_points)
    marks = [line, *([svg.element("polygon", points=arrow, class_="point")] if style.has_arrow else [])]
    yield svg.group(marks, class_=style.class_)
    if arc.label and not words.is_vertical and svg.text_width(arc.label, svg.SMALL_SIZE) < 2 * radius:
        y = base + sign * reach + (9 if sign > 0 else -2)
        yield from labels.label((start + end) / 2, y, arc.label)


def draw_examples(examples: Examples, width: float = DEFAULT_WIDTH, numbers: Collection[int] = ()) -> Drawing:
    """The examples below one another, each with caption and score; highlighted words are shaded by kind."""
    kinds = sorted({kind for example in examples.examples for kind in example.highlights})
    chosen = [example for number, example in enumerate(examples.examples, start=1) if number in numbers]
    parts: list[Markup] = []
    y = 0.0
    for example in chosen or examples.examples:
        lines, y = _example(example, kinds, y, width)
        parts += lines
    if not parts:
        return Drawing(())
    label = f"{len(chosen or examples.examples)} example sentences"
    entries = {kind: SeriesStyle(series_class(index), "", "square") for index, kind in enumerate(kinds)}
    return Drawing(
        [Panel("", "", width, y, Markup().join(parts), label)], legend=legend(entries, width, lines=False, least=1)
    )


def _example(example: HighlightedSentence, kinds: list[str], y: float, width: float) -> tuple[list[Markup], float]:
    """The caption and the words, broken into lines, and the height below them."""
    score = f"score {example.score:.3g}" if math.isfinite(example.score) else ""
    caption = " · ".join(filter(None, (example.caption, score)))
    parts: list[Markup] = []
    for line in svg.wrap_label(caption, width) if caption else ():
        parts.append(svg.text(0, y + 11, line, class_="muted"))
        y += svg.LINE_HEIGHT
    x = 4.0
    for index, word in enumerate(example.words):
        space = svg.text_width(word)
        if x > 4 and x + space > width - 4:
            x, y = 4.0, y + LINE
        marked = [kind for kind in kinds if index in example.highlights.get(kind, ())]
        thickness = (LINE - 3) / max(1, len(marked))
        for position, kind in enumerate(marked):  # a word with two highlights shows both colours, one above the other
            box = {"x": x - 2, "y": y + 1.5 + position * thickness, "width": space + 4, "height": thickness}
            mark = svg.element("rect", **box, rx=2, class_="highlight", tip=f"{word}: {kind}")
            parts.append(svg.group([mark], class_=series_class(kinds.index(kind))))
        parts.append(svg.text(x, y + LINE / 2 + 4, svg.fit_label(word, width - 8), class_="word quiet"))
        x += space + WORD_SPACE - 3
    return parts, y + LINE + PARAGRAPH
