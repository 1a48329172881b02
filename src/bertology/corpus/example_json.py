"""Examples as plain JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bertology.corpus.example import Example
from bertology.corpus.sentence import ANNOTATIONS, SPAN_ANNOTATIONS, WORD_ANNOTATIONS, SemanticFrame, Sentence, Span

STORED_KEYS = {
    "segments": "parts",
    "morphology": "features",
    "governors": "heads",
    "answer_spans": "answers",
    "marked_words": "marks",
}
"""Fields whose JSON key differs from their name.

The keys predate the names. They are part of the text that examples are hashed by; the hash orders the examples of
random splits and samples, so other keys would change published numbers.
"""


def example_to_json(example: Example) -> dict[str, Any]:
    """Return the example as plain JSON values, without empty fields."""
    data: dict[str, Any] = {
        "kind": example.kind,
        STORED_KEYS["segments"]: [sentence_to_json(segment) for segment in example.segments],
    }
    data |= {name: getattr(example, name) for name in ("label", "id", "source") if getattr(example, name)}
    return data | {name: dict(getattr(example, name)) for name in ("factors", "labels") if getattr(example, name)}


def example_from_json(data: Mapping[str, Any]) -> Example:
    """Invert `example_to_json`."""
    return Example(
        tuple(sentence_from_json(segment) for segment in data[STORED_KEYS["segments"]]),
        data["kind"],
        data.get("label"),
        data.get("id", ""),
        data.get("source", ""),
        MappingProxyType(data.get("factors", {})),
        MappingProxyType(data.get("labels", {})),
    )


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """Return the sentence as plain JSON values, without absent annotations."""
    data: dict[str, Any] = {
        "words": list(sentence.words),
        "text": sentence.text,
        "offsets": [list(offsets) for offsets in sentence.offsets],
    }
    data |= {name: getattr(sentence, name) for name in ("id", "document") if getattr(sentence, name)}
    for name in ANNOTATIONS:
        value: Any = getattr(sentence, name)
        if value is None:
            continue
        if name in SPAN_ANNOTATIONS:
            value = spans_to_json(value)
        elif name == "frames":
            value = [
                {"predicate": f.predicate, "sense": f.sense, "arguments": spans_to_json(f.arguments)} for f in value
            ]
        elif name in WORD_ANNOTATIONS:
            value = list(value)
        data[STORED_KEYS.get(name, name)] = value
    if sentence.marked_words:
        data[STORED_KEYS["marked_words"]] = {role: list(words) for role, words in sentence.marked_words.items()}
    if sentence.word_labels:
        data["word_labels"] = {name: list(labels) for name, labels in sentence.word_labels.items()}
    if sentence.span_labels:
        data["span_labels"] = {name: spans_to_json(spans) for name, spans in sentence.span_labels.items()}
    return data


def sentence_from_json(data: Mapping[str, Any]) -> Sentence:
    """Invert `sentence_to_json`."""
    names = {key: name for name, key in STORED_KEYS.items()}
    values: dict[str, Any] = {names.get(key, key): value for key, value in data.items()}
    values["offsets"] = tuple((start, end) for start, end in values["offsets"])
    for name in values.keys() & {"words", *WORD_ANNOTATIONS}:
        values[name] = tuple(values[name])
    if "further_senses" in values:
        values["further_senses"] = tuple(map(tuple, values["further_senses"]))
    for name in values.keys() & set(SPAN_ANNOTATIONS):
        values[name] = tuple(Span(*span) for span in values[name])
    if "frames" in values:
        values["frames"] = tuple(
            SemanticFrame(frame["predicate"], frame["sense"], tuple(Span(*span) for span in frame["arguments"]))
            for frame in values["frames"]
        )
    if "marked_words" in values:
        marked_words = {role: tuple(words) for role, words in values["marked_words"].items()}
        values["marked_words"] = MappingProxyType(marked_words)
    if "word_labels" in values:
        word_labels = {name: tuple(labels) for name, labels in values["word_labels"].items()}
        values["word_labels"] = MappingProxyType(word_labels)
    if "span_labels" in values:
        span_labels = {name: tuple(Span(*span) for span in spans) for name, spans in values["span_labels"].items()}
        values["span_labels"] = MappingProxyType(span_labels)
    return Sentence(**values)


def spans_to_json(spans: Sequence[Span]) -> list[list[int | str]]:
    """Each span as its first word, the word after its last one, and its label."""
    return [[span.start, span.end, span.label] for span in spans]
