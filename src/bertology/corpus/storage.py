"""Items as JSON and back, without loss: how a recording keeps its corpus, and what a fingerprint is taken of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import LAYERS, PER_WORD, SPANS, Frame, Sentence, Span


def item_to_json(item: Item) -> dict[str, Any]:
    """The item as plain JSON values; empty fields are left out."""
    data: dict[str, Any] = {"kind": item.kind, "parts": [sentence_to_json(part) for part in item.parts]}
    return data | {name: getattr(item, name) for name in ("label", "id", "source") if getattr(item, name)}


def item_from_json(data: Mapping[str, Any]) -> Item:
    """The inverse of `item_to_json`."""
    parts = tuple(sentence_from_json(part) for part in data["parts"])
    return Item(parts, data["kind"], data.get("label"), data.get("id", ""), data.get("source", ""))


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """The sentence as plain JSON values; absent layers are left out."""
    data: dict[str, Any] = {
        "words": list(sentence.words),
        "text": sentence.text,
        "offsets": [list(pair) for pair in sentence.offsets],
    }
    for name in ("id", "document"):
        if value := getattr(sentence, name):
            data[name] = value
    for name in LAYERS:
        value = getattr(sentence, name)
        if value is None:
            continue
        if name in SPANS:
            data[name] = [_span_to_json(span) for span in cast("tuple[Span, ...]", value)]
        elif name == "frames":
            data[name] = [_frame_to_json(frame) for frame in cast("tuple[Frame, ...]", value)]
        else:
            data[name] = list(cast("tuple[str, ...]", value)) if name in PER_WORD else value
    if sentence.marks:
        data["marks"] = {name: list(indices) for name, indices in sentence.marks.items()}
    return data


def sentence_from_json(data: Mapping[str, Any]) -> Sentence:
    """The inverse of `sentence_to_json`."""
    values = dict(data)
    values["words"] = tuple(values["words"])
    values["offsets"] = tuple((a, b) for a, b in values["offsets"])
    for name in PER_WORD:
        if name in values:
            values[name] = tuple(values[name])
    for name in SPANS:
        if name in values:
            values[name] = tuple(Span(*span) for span in values[name])
    if "frames" in values:
        values["frames"] = tuple(
            Frame(frame["predicate"], frame["sense"], tuple(Span(*span) for span in frame["arguments"]))
            for frame in values["frames"]
        )
    if "marks" in values:
        values["marks"] = MappingProxyType({name: tuple(indices) for name, indices in values["marks"].items()})
    return Sentence(**values)


def _span_to_json(span: Span) -> list[int | str]:
    return [span.start, span.end, span.label]


def _frame_to_json(frame: Frame) -> dict[str, Any]:
    arguments = [_span_to_json(span) for span in frame.arguments]
    return {"predicate": frame.predicate, "sense": frame.sense, "arguments": arguments}
