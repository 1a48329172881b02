"""Documents as items: the sentences of each put together, for what reaches beyond a sentence, such as coreference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import PER_WORD, ROOT, SPANS, Frame, Sentence, Span

SPARSE = frozenset({*SPANS, "frames", "senses"})
Unit = Literal["sentence", "document"]


def in_units(items: Iterable[Item], unit: Unit) -> Iterator[Item]:
    """The items as they are, or those that follow each other in one document as one item."""
    if unit == "sentence":
        yield from items
        return
    for (document, source), run in groupby(items, key=lambda item: (item.parts[0].document, item.source)):
        some = list(run)
        if document:
            whole = put_together([item.parts[0] for item in some])
            yield Item((replace(whole, id=document, document=document),), id=document, source=source)
        else:
            yield from some


def put_together(parts: Sequence[Sentence]) -> Sentence:
    """Several sentences as one, a space between their texts; every layer that all of them carry is carried over.

    Of layers in which a sentence may have nothing (spans, frames, senses) it is enough that one carries them. Trees
    stand side by side, each with a root of its own.
    """
    text, offsets = "", list[tuple[int, int]]()
    layers: dict[str, list[Any]] = {name: [] for name in (*PER_WORD, *SPANS, "frames")}
    marks: dict[str, list[int]] = {}
    start = 0
    for part in parts:
        text += " " if text else ""
        offsets.extend((a + len(text), b + len(text)) for a, b in part.offsets)
        text += part.text
        for name, found in layers.items():
            values = getattr(part, name)
            if values is not None:
                found.extend(_moved(value, name, start) for value in values)
            elif name == "senses":
                found.extend([None] * len(part))
        for name, words in part.marks.items():
            marks.setdefault(name, []).extend(word + start for word in words)
        start += len(part)
    kept: dict[str, Any] = {}
    for name, found in layers.items():
        carried = [getattr(part, name) is not None for part in parts]
        kept[name] = tuple(found) if (any if name in SPARSE else all)(carried) else None
    return Sentence(
        words=tuple(word for part in parts for word in part.words),
        text=text,
        offsets=tuple(offsets),
        marks=MappingProxyType({name: tuple(words) for name, words in marks.items()}),
        **kept,
    )


def _moved(value: Any, layer: str, start: int) -> Any:
    """A head, a span or a frame at its place in the whole; other layers say the same everywhere."""
    if layer == "heads":
        return value if value == ROOT else value + start
    if isinstance(value, Span):
        return replace(value, start=value.start + start, end=value.end + start)
    if isinstance(value, Frame):
        arguments = tuple(_moved(one, layer, start) for one in value.arguments)
        return replace(value, predicate=value.predicate + start, arguments=arguments)
    return value
