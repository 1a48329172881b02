"""Word properties a probe can predict: one label per word, taken from the annotations of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal

from bertology.analyses.probing.dataset import ProbeCase, ProbeTask
from bertology.corpus.sentence import ROOT, Sentence, Span

Label = Literal[
    "upos", "xpos", "relation", "governor_direction", "entity", "chunk", "role", "mention", "tag", "sense", "number"
]
LabelOption = Annotated[Label, "Word property to predict."]
OUTSIDE = "O"


def _word_task(annotation: str, name: str, extract_labels: Callable[[Sentence], Sequence[str | None]]) -> ProbeTask:
    """The task of a function from a sentence to one label per word; control types are lower-cased forms."""

    def extract(sentence: Sentence) -> Iterator[ProbeCase]:
        for word, label in enumerate(extract_labels(sentence)):
            if label is not None:
                yield ProbeCase(label, sentence.words[word].lower(), ((word, word + 1),))

    return ProbeTask((annotation,), name, extract)


def _span_labels(spans: Sequence[Span], length: int) -> list[str | None]:
    """The label of the shortest span around each word."""
    labels: list[str | None] = [OUTSIDE] * length
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        labels[span.start : span.end] = [span.label or "in"] * (span.end - span.start)
    return labels


def _relation_labels(sentence: Sentence) -> list[str | None]:
    return [relation.partition(":")[0] for relation in sentence.relations or ()]


def _governor_directions(sentence: Sentence) -> list[str | None]:
    governors = enumerate(sentence.governors or ())
    return ["root" if governor == ROOT else "before" if governor < word else "after" for word, governor in governors]


def _role_labels(sentence: Sentence) -> list[str | None]:
    arguments = [argument for frame in sentence.frames or () for argument in frame.arguments]
    labels = _span_labels(arguments, len(sentence))
    for frame in sentence.frames or ():
        labels[frame.predicate] = "predicate"
    return labels


def _mention_labels(sentence: Sentence) -> list[str | None]:
    spans = [Span(mention.start, mention.end, "mention") for mention in sentence.mentions or ()]
    return _span_labels(spans, len(sentence))


def _number_labels(sentence: Sentence) -> list[str | None]:
    labels: list[str | None] = []
    for morphology in sentence.morphology or ():
        features = dict(pair.split("=", 1) for pair in morphology.split("|") if "=" in pair)
        labels.append(features.get("Number"))
    return labels


WORD_LABELS: Mapping[Label, ProbeTask] = MappingProxyType(
    {
        "upos": _word_task("pos", "universal part of speech", lambda s: s.pos or ()),
        "xpos": _word_task("xpos", "treebank-specific part of speech", lambda s: s.xpos or ()),
        "relation": _word_task("relations", "relation to the governor, without its subtype", _relation_labels),
        "governor_direction": _word_task(
            "governors",
            "whether the governor is before or after the word; root if there is none",
            _governor_directions,
        ),
        "entity": _word_task("entities", "entity type, O outside", lambda s: _span_labels(s.entities or (), len(s))),
        "chunk": _word_task("chunks", "chunk type, O outside", lambda s: _span_labels(s.chunks or (), len(s))),
        "role": _word_task("frames", "role of the shortest argument around the word, predicate, or O", _role_labels),
        "mention": _word_task("mentions", "whether the word is in a mention of an entity", _mention_labels),
        "tag": _word_task("tags", "tag of a tagged corpus", lambda s: s.tags or ()),
        "sense": _word_task("senses", "word sense, where annotated", lambda s: s.senses or ()),
        "number": _word_task("morphology", "grammatical number, where marked", _number_labels),
    }
)
