"""Labelled spans and pairs of spans, from whatever annotation a corpus carries (tenney2019edge)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from bertology.corpus.sentence import Sentence, Span
from bertology.measures.probes.probe_material import Case, Cases
from bertology.recording.entry import Entry

Edge = Literal["upos", "relation", "entity", "chunk", "role", "coreference"]


@dataclass(frozen=True)
class EdgeTask:
    """One kind of edge: the annotation layers it needs and the cases of a sentence, its words counted from 0."""

    layers: tuple[str, ...]
    about: str
    of: Callable[[Sentence], Iterator[Case]]


def edge_cases(edge: Edge) -> Cases:
    """The cases of an entry."""

    def cases(entry: Entry) -> list[Case]:
        found: list[Case] = []
        start = 0
        for part in entry.input.parts:
            for case in EDGES[edge].of(part):
                spans = tuple((first + start, last + start) for first, last in case.spans)
                found.append(case._replace(spans=spans))
            start += len(part)
        return found

    return cases


def _tags(part: Sentence) -> Iterator[Case]:
    for word, tag in enumerate(part.pos or ()):
        yield Case(tag, part.words[word].lower(), ((word, word + 1),))


def _relations(part: Sentence) -> Iterator[Case]:
    if part.heads is None or part.relations is None:
        return
    for word, (head, relation) in enumerate(zip(part.heads, part.relations, strict=True)):
        if head >= 0:
            name = relation.partition(":")[0]
            yield Case(name, part.words[word].lower(), ((word, word + 1), (head, head + 1)))


def _spans(part: Sentence, spans: tuple[Span, ...] | None) -> Iterator[Case]:
    for span in spans or ():
        last = part.words[min(max(span.end, span.start + 1), len(part)) - 1]
        yield Case(span.label, last.lower(), ((span.start, span.end),))


def _roles(part: Sentence) -> Iterator[Case]:
    for frame in part.frames or ():
        verb = part.words[frame.predicate].lower()
        for argument in frame.arguments:
            yield Case(argument.label, verb, ((frame.predicate, frame.predicate + 1), (argument.start, argument.end)))


def _coreference(part: Sentence) -> Iterator[Case]:
    """Every pair of mentions of one entity, and as many pairs of two entities as there are, at random."""
    mentions = sorted(
        {(one.start, one.end): one for one in part.mentions or () if one.end > one.start}.values(),
        key=lambda one: (one.start, one.end),
    )
    same = [pair for pair in combinations(mentions, 2) if pair[0].label == pair[1].label]
    other = [pair for pair in combinations(mentions, 2) if pair[0].label != pair[1].label]
    for name, pairs in (("same", same), ("other", sorted(other, key=lambda pair: _drawn(part, pair))[: len(same)])):
        for first, second in pairs:
            word = part.words[second.end - 1].lower()
            yield Case(name, word, ((first.start, first.end), (second.start, second.end)))


def _drawn(part: Sentence, pair: tuple[Span, Span]) -> bytes:
    places = [(span.start, span.end) for span in pair]
    return hashlib.sha256(f"{places} {' '.join(part.words)}".encode()).digest()


EDGES: Mapping[Edge, EdgeTask] = MappingProxyType(
    {
        "upos": EdgeTask(("pos",), "part of speech of a word", _tags),
        "relation": EdgeTask(("heads", "relations"), "relation of a word to its head", _relations),
        "entity": EdgeTask(("entities",), "kind of an entity", lambda part: _spans(part, part.entities)),
        "chunk": EdgeTask(("chunks",), "kind of a chunk", lambda part: _spans(part, part.chunks)),
        "role": EdgeTask(("frames",), "role of an argument of a predicate", _roles),
        "coreference": EdgeTask(("mentions",), "whether two mentions are of one entity", _coreference),
    }
)
