"""What a probe may be asked about a word: one label a word, from whatever annotation a corpus carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from bertology.corpus.sentence import ROOT, Sentence, Span

Label = Literal[
    "upos", "xpos", "relation", "head_direction", "entity", "chunk", "role", "mention", "tag", "sense", "number"
]
OUTSIDE = "O"


@dataclass(frozen=True)
class WordLabel:
    """One kind of label: the annotation layer it needs, what it says, and the label of each word of a sentence."""

    layer: str
    about: str
    of: Callable[[Sentence], Sequence[str | None]]


def _spans(spans: Sequence[Span], length: int) -> list[str | None]:
    """The label of the shortest span that each word lies in."""
    found: list[str | None] = [OUTSIDE] * length
    for span in sorted(spans, key=lambda one: (one.start - one.end, one.start)):
        found[span.start : span.end] = [span.label or "in"] * (span.end - span.start)
    return found


def _relations(sentence: Sentence) -> list[str | None]:
    return [name.partition(":")[0] for name in sentence.relations or ()]


def _directions(sentence: Sentence) -> list[str | None]:
    names = {True: "before", False: "after"}
    return ["root" if head == ROOT else names[head < word] for word, head in enumerate(sentence.heads or ())]


def _roles(sentence: Sentence) -> list[str | None]:
    arguments = [one for frame in sentence.frames or () for one in frame.arguments]
    found = _spans(arguments, len(sentence))
    for frame in sentence.frames or ():
        found[frame.predicate] = "predicate"
    return found


def _mentions(sentence: Sentence) -> list[str | None]:
    within = [Span(one.start, one.end, "mention") for one in sentence.mentions or ()]
    return _spans(within, len(sentence))


def _number(sentence: Sentence) -> list[str | None]:
    found: list[str | None] = []
    for features in sentence.features or ():
        values = dict(pair.split("=", 1) for pair in features.split("|") if "=" in pair)
        found.append(values.get("Number"))
    return found


WORD_LABELS: Mapping[Label, WordLabel] = MappingProxyType(
    {
        "upos": WordLabel("pos", "universal part of speech", lambda one: one.pos or ()),
        "xpos": WordLabel("xpos", "the treebank's own part of speech", lambda one: one.xpos or ()),
        "relation": WordLabel("relations", "relation to the head, without its subtype", _relations),
        "head_direction": WordLabel("heads", "whether the head stands before or after, or there is none", _directions),
        "entity": WordLabel("entities", "kind of entity, O outside", lambda one: _spans(one.entities or (), len(one))),
        "chunk": WordLabel("chunks", "kind of chunk, O outside", lambda one: _spans(one.chunks or (), len(one))),
        "role": WordLabel("frames", "role in the shortest argument around the word, predicate, or O", _roles),
        "mention": WordLabel("mentions", "whether the word is in a mention of an entity", _mentions),
        "tag": WordLabel("tags", "the tag of a tagged corpus", lambda one: one.tags or ()),
        "sense": WordLabel("senses", "sense of the words that have one", lambda one: one.senses or ()),
        "number": WordLabel("features", "grammatical number of the words that have one", _number),
    }
)
