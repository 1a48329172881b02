"""What does the model see? Items of a corpus as pieces with labels, in batches of like length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertology.corpus.corpus import Input, Item
from bertology.encoder.encoder import Batch
from bertology.encoder.pieces import Pieces

UNLABELLED = -100
"""The label of a place that no loss is taken at: torch's own convention."""

Tokenise = Callable[[Sequence[Input]], list[Pieces]]


@dataclass(frozen=True)
class Example:
    """One sequence: piece ids, segments, and one label for the whole or one for each piece."""

    item: Item
    ids: tuple[int, ...]
    types: tuple[int, ...]
    labels: tuple[int, ...]
    words: tuple[int, ...] = ()
    """Where the first piece of each word stands; empty where the whole is labelled."""

    def __len__(self) -> int:
        return len(self.ids)


def classified(
    items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int, stretches: int = 1
) -> tuple[list[Example], int]:
    """Texts or pairs with a class, and how many items were cut or left out.

    A single text that is too long gives its last `stretches` stretches, each with the class of the whole: reviews end
    with their verdict. A pair that is too long is left out, because what would be cut may be what its label is about.
    """
    examples: list[Example] = []
    affected = 0
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        label = (labels.index(str(item.label)),)
        ids, types = tuple(pieces.ids.tolist()), tuple(pieces.types.tolist())
        if len(ids) <= longest:
            examples.append(Example(item, ids, types, label))
            continue
        affected += 1
        if item.kind == "sentence":
            shorter = _from_the_end(ids, longest, stretches)
            examples.extend(Example(item, some, (types[0],) * len(some), label) for some in shorter)
    return examples, affected


def _from_the_end(ids: tuple[int, ...], longest: int, stretches: int) -> list[tuple[int, ...]]:
    """The last pieces in stretches between the first and the last special piece, the last stretch first."""
    first, *inner, last = ids
    room = longest - 2
    ends = range(len(inner), 0, -room)[:stretches]
    return [(first, *inner[max(0, end - room) : end], last) for end in ends]


def tagged(
    items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int
) -> tuple[list[Example], int]:
    """Sentences with a tag for each word, given to its first piece, and how many were too long and left out.

    A word whose tag is not one of `labels` has no label: it is neither learnt nor judged.
    """
    known = {label: place for place, label in enumerate(labels)}
    examples: list[Example] = []
    left_out = 0
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        if len(pieces) > longest or pieces.vanished:
            left_out += 1
            continue
        tags = item.parts[0].tags or ()
        first = [int(np.argmax(pieces.word == word)) for word in range(pieces.words)]
        given = [UNLABELLED] * len(pieces)
        for place, tag in zip(first, tags, strict=True):
            given[place] = known.get(tag, UNLABELLED)
        ids, types = tuple(pieces.ids.tolist()), tuple(pieces.types.tolist())
        examples.append(Example(item, ids, types, tuple(given), tuple(first)))
    return examples, left_out


@dataclass(frozen=True)
class Padded:
    """Some examples of like length: what the model is shown, their labels, and their places in the list."""

    shown: Batch
    labels: Tensor
    places: list[int]


def batches(examples: Sequence[Example], size: int, *, order: int | None = None) -> Iterator[Padded]:
    """Every example once, those of like length together; `order` shuffles, the same for the same number.

    Without `order` they come from the shortest to the longest. With it, lengths are sorted only within runs of a few
    batches, so that each epoch groups the examples anew.
    """
    places = list(range(len(examples)))
    if order is None:
        yield from (pad(examples, group) for group in _groups(_by_length(examples, places), size))
        return
    shuffle = random.Random(order)
    shuffle.shuffle(places)
    groups = [group for some in _groups(places, 16 * size) for group in _groups(_by_length(examples, some), size)]
    shuffle.shuffle(groups)
    yield from (pad(examples, group) for group in groups)


def pad(examples: Sequence[Example], places: list[int]) -> Padded:
    """These examples as one batch, padded on the right."""
    width = max(len(examples[place]) for place in places)
    ids, types, mask = (torch.zeros(len(places), width, dtype=torch.long) for _ in range(3))
    wide = width if examples[places[0]].words else 1
    labels = torch.full((len(places), wide), UNLABELLED, dtype=torch.long)
    for row, place in enumerate(places):
        example = examples[place]
        ids[row, : len(example)] = torch.tensor(example.ids)
        types[row, : len(example)] = torch.tensor(example.types)
        mask[row, : len(example)] = 1
        labels[row, : len(example.labels)] = torch.tensor(example.labels)
    return Padded(Batch(ids, types, mask), labels, places)


def _by_length(examples: Sequence[Example], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: len(examples[place]))


def _groups(places: Sequence[int], size: int) -> list[list[int]]:
    return [list(places[start : start + size]) for start in range(0, len(places), size)]
