"""A sentence with its tree, and edges of a probe over its words, as views take them."""

from __future__ import annotations

from collections.abc import Iterable

from bertology.corpus.sentence import Sentence, spell
from bertology.results.result import Result
from bertology.results.shapes import Arc, ArcDiagram, Arcs


def annotated(words: tuple[str, ...], heads: tuple[int, ...], relations: tuple[str, ...]) -> Sentence:
    """The words as a text, each with its head and relation."""
    text, offsets = spell(words)
    return Sentence(words=words, text=text, offsets=offsets, heads=heads, relations=relations)


def probed(words: tuple[str, ...], edges: Iterable[tuple[int, int]]) -> Result:
    """Edges without direction that a structural probe found."""
    diagram = ArcDiagram(words=words, arcs=tuple(Arc(start=start, end=end) for start, end in edges))
    data = Arcs(sentences=(diagram,))
    return Result(analysis="probes/structural", version=1, options={}, inputs={}, n=1, data=data, provenance={})
