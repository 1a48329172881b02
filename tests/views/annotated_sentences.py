"""An annotated sentence, and arcs of a structural probe over its words."""

from __future__ import annotations

from collections.abc import Iterable

from bertology.corpus.sentence import Sentence, join_words
from bertology.results.illustrations import Arc, ArcDiagram, Arcs
from bertology.results.result import Result


def annotated_sentence(words: tuple[str, ...], governors: tuple[int, ...], relations: tuple[str, ...]) -> Sentence:
    """A sentence with governors and relations."""
    text, offsets = join_words(words)
    return Sentence(words=words, text=text, offsets=offsets, governors=governors, relations=relations)


def probe_result(words: tuple[str, ...], edges: Iterable[tuple[int, int]]) -> Result:
    """A result of probes/structural with undirected edges."""
    diagram = ArcDiagram(words=words, arcs=tuple(Arc(start=start, end=end) for start, end in edges))
    data = Arcs(sentences=(diagram,))
    return Result(analysis="probes/structural", version=1, options={}, inputs={}, n=1, data=data, provenance={})
