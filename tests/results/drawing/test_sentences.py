"""Trees as arcs: without arrowheads, agreement with gold marked, below one another where a line is too long."""

from __future__ import annotations

import re

import pytest

from bertology.results.drawing.sentences import draw_arcs, draw_examples
from bertology.results.illustrations import Arc, ArcDiagram, Arcs, Examples, HighlightedSentence

WORDS = ("She", "opened", "the", "old", "letters")
SENTENCE = ArcDiagram(
    words=WORDS,
    arcs=(Arc(start=0, end=1), Arc(start=1, end=2, label="det"), Arc(start=3, end=4)),
    gold=(Arc(start=1, end=0, label="nsubj"), Arc(start=1, end=4, label="obj"), Arc(start=4, end=3, label="amod")),
)


def test_undirected_edges_have_no_arrowheads_and_match_in_either_direction() -> None:
    (panel,) = draw_arcs(Arcs(sentences=(SENTENCE,))).panels
    body = str(panel.body)
    assert "<polygon" not in body and "→" not in body
    assert body.count('class="arc-agrees"') == 2 and body.count('class="rule-baseline"') == 1
    assert panel.caption == "2 of 3 gold edges found"
    assert body.count("stroke-dasharray") == 1 + 1  # the wrong edge, and the gold edge that was not found
    assert "predicted, not in the gold tree" in body and "gold, not found" in body


def test_directed_edges_have_arrowheads_and_match_in_one_direction() -> None:
    (panel,) = draw_arcs(Arcs(sentences=(SENTENCE,), directed=True)).panels
    body = str(panel.body)
    assert body.count("<polygon") == 6 and "→" in body and panel.caption == "0 of 3 gold edges found"


@pytest.mark.parametrize("width", [90.0, 330.0])
def test_a_sentence_that_is_too_wide_runs_down(width: float) -> None:
    drawing = draw_arcs(Arcs(sentences=(SENTENCE,)), width)
    positions = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle" class="word">', str(drawing.panels[0].body)
    )
    across, down = (len({position[axis] for position in positions}) for axis in (0, 1))
    assert len(positions) == 5 and (across, down) == ((1, 5) if width < 200 else (5, 1))


def test_labels_of_arcs_do_not_overlap() -> None:
    arcs = tuple(Arc(start=2, end=4, label="det") for _ in range(5))
    (panel,) = draw_arcs(Arcs(sentences=(ArcDiagram(words=WORDS, arcs=arcs),))).panels
    assert str(panel.body).count(">det<") == 1 and str(panel.body).count("\ndet\n") == 5


def test_sentences_are_chosen_by_number_and_examples_fit_the_width() -> None:
    assert [panel.name for panel in draw_arcs(Arcs(sentences=(SENTENCE,) * 3), numbers=[2]).panels] == ["Sentence 2"]
    examples = tuple(HighlightedSentence(words=WORDS * number, highlights={"verb": (1,)}) for number in (4, 8))
    drawing = draw_examples(Examples(examples=examples), 200, [1])
    body = str(drawing.panels[0].body)
    assert body.count('class="word quiet"') == 20 and body.count('class="highlight"') == 1
    ends = [float(x) for x in re.findall(r'<text x="([\d.]+)"', body)]
    assert max(ends) < 200 and drawing.legend is not None
