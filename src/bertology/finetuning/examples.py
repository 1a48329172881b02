"""What does the model see? Items of a corpus as pieces with labels, in batches of like length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.corpus.corpus import Input, Item
from bertology.corpus.factors import factors
from bertology.encoder.encoder import Batch
from bertology.encoder.pieces import Pieces

Ints = NDArray[np.int64]

UNLABELLED = -100
"""The label of a place that no loss is taken at: torch's own convention."""
NO_PIECE = -1
"""Stands where a shorter sequence has no piece."""

Tokenise = Callable[[Sequence[Input]], list[Pieces]]


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Example:
    """One sequence, or one for each option: piece ids, segments, and labels of the whole or of each piece.

    `kind` groups figures; `item` is the place of the item it was made of; `word` is the word of each piece, -1 for
    none, where answers are about words.
    """

    ids: Ints
    types: Ints
    labels: Ints
    kind: str = ""
    item: int = 0
    word: Ints = field(default_factory=_none)

    def __len__(self) -> int:
        return self.ids.shape[-1]

    @property
    def words(self) -> Ints:
        """Where the labelled words of a tagged sentence begin: the places that have a label."""
        return np.flatnonzero(self.labels != UNLABELLED)

    @property
    def first_pieces(self) -> Ints:
        """Where each word begins, in the order of the words."""
        return first_pieces(self.word)


@dataclass(frozen=True)
class Seen:
    """The items that became examples, those examples, and how many items were cut or left out."""

    items: list[Item]
    examples: list[Example]
    cut: int


def classified(items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int) -> Seen:
    """Texts or pairs with a class.

    A single text that is too long keeps its end, where reviews have their verdict. A pair that is too long is left
    out, because what would be cut may be what its label is about. A class that is not one of `labels` cannot be learnt.
    """
    known = {label: place for place, label in enumerate(labels)}
    kept: list[Item] = []
    examples: list[Example] = []
    cut = 0
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        ids, types = whole(pieces)
        if len(ids) > longest:
            cut += 1
            if item.kind != "sentence":
                continue
            ids, types = np.append(ids[:1], ids[-(longest - 1) :]), types[:longest]
        label = np.array([known.get(str(item.label), UNLABELLED)])
        examples.append(Example(ids, types, label, _kind(item), len(kept)))
        kept.append(item)
    return Seen(kept, examples, cut)


def tagged(
    items: Sequence[Item], tokenise: Tokenise, labels: Sequence[str], *, longest: int, layer: str = "tags"
) -> Seen:
    """Sentences with a tag for each word, given to its first piece; those too long are left out.

    A word whose tag is not one of `labels` has no label: it cannot be learnt from.
    """
    known = {label: place for place, label in enumerate(labels)}
    kept: list[Item] = []
    examples: list[Example] = []
    for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
        if len(pieces) > longest or pieces.vanished:
            continue
        given = np.full(len(pieces), UNLABELLED)
        for word, tag in enumerate(getattr(item.parts[0], layer) or ()):
            given[int(np.argmax(pieces.word == word))] = known.get(tag, UNLABELLED)
        examples.append(Example(*whole(pieces), given, item=len(kept), word=np.asarray(pieces.word, np.int64)))
        kept.append(item)
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
    yield from (pad(examples, group) for group in grouped(examples, size, order=order))


def grouped(examples: Sequence[Example], size: int, *, order: int | None = None) -> list[list[int]]:
    """The places of the examples of each batch; see `batches`."""
    places = list(range(len(examples)))
    if order is None:
        return _groups(_by_length(examples, places), size)
    shuffle = random.Random(order)
    shuffle.shuffle(places)
    groups = [group for some in _groups(places, 16 * size) for group in _groups(_by_length(examples, some), size)]
    shuffle.shuffle(groups)
    return groups


def pad(examples: Sequence[Example], places: list[int]) -> Padded:
    """These examples as one batch, padded on the right."""
    some = [examples[place] for place in places]
    ids = _filled([example.ids for example in some], NO_PIECE)
    types = _filled([example.types for example in some], 0)
    labels = _filled([example.labels for example in some], UNLABELLED)
    arrays = (np.maximum(ids, 0), np.maximum(types, 0), (ids != NO_PIECE).astype(np.int64))
    return Padded(Batch(*(torch.from_numpy(array) for array in arrays)), torch.from_numpy(labels), places)


def first_pieces(word: Ints) -> Ints:
    """The place of the first piece of each word, given the word of each piece."""
    found, places = np.unique(word, return_index=True)
    return places[found >= 0]


def whole(pieces: Pieces) -> tuple[Ints, Ints]:
    """The ids and segments of all pieces."""
    return np.asarray(pieces.ids, np.int64), np.asarray(pieces.types, np.int64)


def stacked(arrays: Sequence[Ints]) -> Ints:
    """Sequences of any lengths as rows, `NO_PIECE` where one has ended."""
    return _filled(arrays, NO_PIECE)


def _filled(arrays: Sequence[Ints], value: int) -> Ints:
    shape = np.max([array.shape for array in arrays], axis=0)
    filled = np.full((len(arrays), *shape), value, np.int64)
    for row, array in enumerate(arrays):
        filled[(row, *(slice(size) for size in array.shape))] = array
    return filled


def _kind(item: Item) -> str:
    """The phenomenon that a generator says its item is about."""
    return factors(item).get("phenomenon", "")


def _by_length(examples: Sequence[Example], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: len(examples[place]))


def _groups(places: Sequence[int], size: int) -> list[list[int]]:
    return [list(places[start : start + size]) for start in range(0, len(places), size)]
