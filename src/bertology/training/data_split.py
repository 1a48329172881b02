"""Split a corpus into training and validation data without sharing a document or text.

Examples are ordered by their content, so that the order of a file does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.hashing import hash_text
from bertology.errors import Refusal

MIN_DOCUMENTS = 10
MIN_EXAMPLES = 4


@dataclass(frozen=True)
class DataSplit:
    """Training and validation examples; no group (`grouped_by`) is in both."""

    train: list[Example]
    validation: list[Example]
    grouped_by: Literal["document", "text", "corpus"]


def split_examples(corpus: Corpus, validation_fraction: float, *, seed: int) -> DataSplit:
    """Hold out about `validation_fraction` of the examples, by document if there are many, else by text."""
    if not 0 < validation_fraction < 1:
        raise Refusal(
            f"--validation-fraction is {validation_fraction}", "a fraction between 0 and 1", "Omit it for the default"
        )
    if len(corpus) < MIN_EXAMPLES:
        raise Refusal(
            f"{corpus.name} has {len(corpus)} usable examples",
            f"at least {MIN_EXAMPLES}, to split into training and validation",
            "Use more data, or name a validation set with --validation",
        )
    documents = {_document(example) for example in corpus}
    by_document = "" not in documents and len(documents) >= MIN_DOCUMENTS
    groups: dict[str, list[Example]] = {}
    for example in sort_by_content(corpus.examples):
        groups.setdefault(_document(example) if by_document else _group_text(example), []).append(example)
    n_validation = max(1, round(validation_fraction * len(corpus)))
    validation: list[Example] = []
    train: list[Example] = []
    for name in sorted(groups, key=lambda name: _hash(f"{seed} {name}")):
        # Held out until there are enough examples; a group far too large stays in training.
        fits = len(validation) < n_validation and len(validation) + len(groups[name]) <= max(2 * n_validation, 1)
        (validation if fits else train).extend(groups[name])
    if not validation or not train:
        raise Refusal(
            f"{corpus.name} cannot be split: all its examples have the same text",
            "examples with different texts",
            "Name a validation set with --validation",
        )
    return DataSplit(sort_by_content(train), sort_by_content(validation), "document" if by_document else "text")


def sort_by_content(examples: Sequence[Example]) -> list[Example]:
    """The examples in an order that depends on their content only."""
    return sorted(examples, key=_example_hash)


def content_hash(examples: Sequence[Example]) -> str:
    """A hash of the examples, independent of their order."""
    return _hash("".join(sorted(map(_example_hash, examples))))[:32]


def _example_hash(example: Example) -> str:
    return _hash(hash_text(example))


def _document(example: Example) -> str:
    return example.segments[-1 if example.kind == "question" else 0].document


def _group_text(example: Example) -> str:
    """The text that related examples share: the passage of a question, the first text of a pair."""
    return example.segments[1 if example.kind == "question" else 0].text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
