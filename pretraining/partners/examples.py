"""What does the model see? Items of a corpus as pieces with labels, in batches of like length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.corpus.corpus import Input, Item
from bertology.corpus.factors import factors
from bertology.encoder.encoder import Batch
from bertology.encoder.pieces import Pieces

UNLABELLED = -100
"""The label of a place that no loss is taken at: torch's own convention."""

Tokenise = Callable[[Sequence[Input]], list[Pieces]]


@dataclass(frozen=True, eq=False)
class Example:
    """One sequence: piece ids, segments, and one label for the whole or one for each piece; `kind` groups figures."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    labels: NDArray[np.int64]
    kind: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def words(self) -> NDArray[np.int64]:
        """Where the labelled words of a tagged sentence begin: the places that have a label."""
        return np.flatnonzero(self.labels != UNLABELLED)


@dataclass(frozen=True)
class Seen:
    """The items that became examples, those examples, and how many items were cut or left out."""

    items: list[Item]
    examples: list[Example]
    cut: int


def classified(items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int) -> Seen:
    """Texts or pairs with a class.

    A single text that is too long keeps its end, where reviews have their verdict. A pair that is too long is left
    out, because what would be cut may be what its label is about.
    """
    kept: list[Item] = []
    examples: list[Example] = []
    cut = 0
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        ids, types = _whole(pieces)
        if len(ids) > longest:
            cut += 1
            if item.kind != "sentence":
                continue
            ids, types = np.append(ids[:1], ids[-(longest - 1) :]), types[:longest]
        kept.append(item)
        examples.append(Example(ids, types, np.array([labels.index(str(item.label))]), _kind(item)))
    return Seen(kept, examples, cut)


def tagged(items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int) -> Seen:
    """Sentences with a tag for each word, given to its first piece; those too long are left out.

    A word whose tag is not one of `labels` has no label: it is neither learnt nor judged.
    """
    known = {label: place for place, label in enumerate(labels)}
    kept: list[Item] = []
    examples: list[Example] = []
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        if len(pieces) > longest or pieces.vanished:
            continue
        given = np.full(len(pieces), UNLABELLED)
        for word, tag in enumerate(item.parts[0].tags or ()):
            given[int(np.argmax(pieces.word == word))] = known.get(tag, UNLABELLED)
        kept.append(item)
        examples.append(Example(*_whole(pieces), given))
    return Seen(kept, examples, len(items) - len(kept))


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
    some = [examples[place] for place in places]
    width = max(map(len, some))
    ids, types, mask = (np.zeros((len(some), width), np.int64) for _ in range(3))
    labels = np.full((len(some), max(len(example.labels) for example in some)), UNLABELLED)
    for row, example in enumerate(some):
        ids[row, : len(example)] = example.ids
        types[row, : len(example)] = example.types
        mask[row, : len(example)] = 1
        labels[row, : len(example.labels)] = example.labels
    shown = Batch(*(torch.from_numpy(array) for array in (ids, types, mask)))
    return Padded(shown, torch.from_numpy(labels), places)


def _kind(item: Item) -> str:
    """The phenomenon that a generator says its item is about."""
    return factors(item).get("phenomenon", "")


def _whole(pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.asarray(pieces.ids, np.int64), np.asarray(pieces.types, np.int64)


def _by_length(examples: Sequence[Example], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: len(examples[place]))


def _groups(places: Sequence[int], size: int) -> list[list[int]]:
    return [list(places[start : start + size]) for start in range(0, len(places), size)]
