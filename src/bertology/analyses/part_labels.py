"""Name the parts of an analysis by what differs in their arguments, for messages about a part that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from bertology.corpus.example import Example

MAX_TEXT = 60
MAX_DEPTH = 2
"""Arguments that hold others, such as a training job with its configuration, are looked into so deep."""


def part_labels(name: str, arguments: Sequence[Mapping[str, Any]]) -> list[str]:
    """A label for each call of a function: `part 3 of 8 of train_and_test (frozen_layers 2, seed 1)`."""
    described = [_describe({**each}, MAX_DEPTH) for each in arguments]
    keys = dict.fromkeys(key for each in described for key in each)
    differing = [key for key in keys if len({each.get(key) for each in described}) > 1]
    labels: list[str] = []
    for number, each in enumerate(described, 1):
        inputs = ", ".join(f"{key} {each[key]}" for key in differing if key in each)
        labels.append(f"part {number} of {len(described)} of {name}{f' ({inputs})' if inputs else ''}")
    return labels


def _describe(values: Mapping[str, Any], depth: int) -> dict[str, str]:
    """The plain values, by name; objects are looked into, and of a list its first number is named."""
    described: dict[str, str] = {}
    for name, value in values.items():
        first = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(value, Example):
            described[name] = repr(_shorten(" ".join(word for text in value.segments for word in text.words)))
        elif isinstance(first, str | int | float | None):
            described[name] = _shorten(str(first)) + (" ..." if first is not value else "")
        elif depth and is_dataclass(value):
            described |= _describe({field.name: getattr(value, field.name) for field in fields(value)}, depth - 1)
    return described


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ..."
