"""Hashes of examples and texts: the fingerprint of a corpus, and orders that depend only on texts and a seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from bertology.corpus.example import Example
from bertology.corpus.example_json import STORED_KEYS, example_to_json, spans_to_json
from bertology.corpus.sentence import LABEL_FIELDS


class Fingerprint:
    """The fingerprint of a corpus, computed as its examples are read."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, examples: Iterable[Example]) -> None:
        """Add the next examples."""
        for example in examples:
            self._hash.update(f"{hash_text(example)}{_label_text(example)}\n".encode())

    @property
    def digest(self) -> str:
        """The fingerprint of the examples so far."""
        return self._hash.hexdigest()[:32]


def hash_text(example: Example) -> str:
    """Return the text that the hash of an example is computed from.

    Hashes predate `Example.factors`: an example without a source is hashed with its factors as the source. They also
    predate labels by name, which do not change the order of examples in splits; only `Corpus.fingerprint` has them.
    """
    data = example_to_json(example)
    data.pop("labels", None)
    for segment in data[STORED_KEYS["segments"]]:
        for name in LABEL_FIELDS:
            segment.pop(name, None)
    factors = data.pop("factors", {})
    if factors and not example.source:
        data["source"] = ";".join(f"{name}={value}" for name, value in factors.items())
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


def _label_text(example: Example) -> str:
    """The labels by name as text, empty if there are none."""
    labels: list[Any] = [dict(example.labels)]
    for segment in example.segments:
        spans = {name: spans_to_json(values) for name, values in segment.span_labels.items()}
        labels.append({name: list(values) for name, values in segment.word_labels.items()} | {"spans": spans})
    is_empty = not example.labels and not any(s.word_labels or s.span_labels for s in example.segments)
    return "" if is_empty else json.dumps(labels, ensure_ascii=False, sort_keys=True)


def seeded_hash(text: str, seed: int) -> bytes:
    """Return a hash to sort by: an order that depends only on the texts and the seed."""
    return hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()


def shuffle_by_hash(texts: Iterable[str], seed: int) -> list[str]:
    """Return the distinct texts in an order that depends only on the texts and the seed."""
    return sorted(set(texts), key=lambda text: seeded_hash(text, seed))
