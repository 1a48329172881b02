"""From attention between pieces to attention between words (clark2019, section 4.1), on the device, inside the pass.

Attention **to** a word is the sum over its pieces, attention **from** a word the mean over its pieces: rows still sum
to 1. Words come first, at their own index; three more places follow for what is no word, see `Place`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from bertology.encoder.attend import LayerActivations
from bertology.encoder.pieces import Pieces, Special
from bertology.recording.compiled import word_maps, worth_compiling
from bertology.recording.frame import Frame
from bertology.recording.fused import FusedRows

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import WordBlocks

From = Literal["mean", "first", "max"]
EXACT_IN_HALF = 2048


class Place(IntEnum):
    """Where pieces that belong to no word are put, counted from the end of the words of the longest entry."""

    CLS = 0
    SEP = 1
    OTHER = 2


@dataclass(frozen=True)
class Words:
    """Which pieces make up the words of a batch; made once a batch by `words_of`.

    `count` is the words of the longest entry. `place` is (batch, piece): a word, one of `Place` after the words, or
    after those the place of padding. `order` lists the pieces by place, `starts` is (batch, place) where each place
    begins in that list, `size` (batch, place) how many pieces it has.
    """

    count: int
    place: Tensor
    order: Tensor
    starts: Tensor
    size: Tensor

    @property
    def there(self) -> Tensor:
        """(batch, word): which words have a piece."""
        return self.size[:, : self.count] > 0

    @property
    def kind(self) -> torch.dtype:
        """What holds places of words exactly, in as little memory as can be: they are small whole numbers."""
        return torch.float16 if self.count <= EXACT_IN_HALF else torch.float32

    @cached_property
    def kept(self) -> dict[tuple[int, int], list[Block]]:
        """How maps of so many heads become maps of so many places, once it has been worked out."""
        return {}

    @cached_property
    def blocks(self) -> WordBlocks | None:
        """The batch in blocks of whole words; None where a word has too many pieces for that."""
        from bertology.recording.kernel_calls import SIDE, WordBlocks

        place = self.place.cpu().numpy()
        word = np.where(place < self.count, place, -1).astype(np.int32)
        cut = [blocks_of_words(row, SIDE) for row in word]
        if None in cut:
            return None
        most = max(1, *(len(blocks or ()) for blocks in cut))
        table = np.zeros((4, len(word), most), np.int32)
        for row, blocks in enumerate(cut):
            for number, block in enumerate(blocks or ()):
                table[:, row, number] = block
        device = self.place.device
        share = torch.where(self.there, 1 / self.size[:, : self.count].clamp(min=1), 0.0)
        start, pieces, first, words = torch.from_numpy(table).to(device).unbind(0)
        return WordBlocks(start, pieces, first, words, torch.from_numpy(word).to(device), share)


def blocks_of_words(word: NDArray[np.int32], most: int) -> list[tuple[int, int, int, int]] | None:
    """First piece, pieces, first word, words of each block of at most `most` pieces and words; None: impossible."""
    pieces = np.flatnonzero(word >= 0)
    own = word[pieces]
    steps = np.diff(own, prepend=own[:1])
    if (steps < 0).any():
        return None
    # All three grow along the pieces: where a block ends is looked up in each of them.
    place, owner, gaps = pieces.tolist(), own.tolist(), np.cumsum(steps > 1).tolist()
    found: list[tuple[int, int, int, int]] = []
    at = 0
    while at < len(place):
        end = min(
            bisect_left(place, place[at] + most),
            bisect_left(owner, owner[at] + most),
            bisect_right(gaps, gaps[at]),  # words without pieces are in no block
        )
        if end < len(place) and owner[end] == owner[end - 1]:
            end = bisect_left(owner, owner[end])  # the rest of this word is not inside
        if end <= at:
            return None
        first, last = place[at], place[end - 1]
        found.append((first, last - first + 1, owner[at], owner[end - 1] - owner[at] + 1))
        at = end
    return found


def strongest_words(layer: LayerActivations, words: Words, barred: Tensor, rows: From) -> Tensor:
    """(batch, head, 2, word) places: the other word each word attends to most, and the one that attends most to it.

    `barred` is (batch, 1, word, word): pairs that do not count. -1 where no pair does.
    """
    if isinstance(layer.rows, FusedRows):
        return layer.rows.strongest_words(words)
    if not words.count:
        return torch.empty(len(words.size), layer.heads, 2, 0, dtype=words.kind, device=words.size.device)
    between = to_words(layer.attention, words, rows=rows).masked_fill(barred, -1.0)
    strongest = (between.max(axis) for axis in (-1, -2))
    return torch.stack([place.masked_fill_(weight < 0, -1) for weight, place in strongest], 2).to(words.kind)


def words_of(frame: Frame) -> Words:
    """The words of a batch."""
    count = max(entry.pieces.words for entry in frame.entries)
    padding = count + len(Place)
    place = np.full((len(frame.entries), frame.width), padding, np.int64)
    for row, entry in enumerate(frame.entries):
        place[row, : len(entry.pieces)] = _places(entry.pieces, count)
    cells = place + (padding + 1) * np.arange(len(place))[:, None]
    size = np.bincount(cells.ravel(), minlength=len(place) * (padding + 1)).reshape(len(place), -1)
    starts = np.cumsum(size, axis=1) - size
    arrays = (place, np.argsort(place, axis=1, kind="stable"), starts, size)
    return Words(count, *(torch.from_numpy(array).to(frame.device) for array in arrays))


def to_words(maps: Tensor, words: Words, *, rows: From = "mean", special: bool = False) -> Tensor:
    """(batch, head, from_word, to_word) from (batch, head, from, to).

    `rows` is how the rows of a word's pieces become one: their mean, the first piece's, or their maximum scaled to a
    sum of 1. With `special` the three further places are kept on both axes and every row of a word that is there sums
    to 1; without, they are left out and nothing is scaled. Rows and columns of words without pieces are 0.
    """
    size = words.count + (len(Place) if special else 0)
    if rows == "mean" and maps.device.type == "cpu" and not maps.requires_grad:
        return word_maps(maps, words, size) if worth_compiling(maps) else _a_few_heads_at_a_time(maps, words, size)
    if rows == "max":
        pooled = _rows(_columns(maps, words), words, rows)
        pooled = pooled / pooled.sum(-1, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)
    else:
        pooled = _columns(_rows(maps, words, rows), words)
    return pooled[..., :size, :size]


CELLS_AT_ONCE = 2**19
"""How many attention weights a processor takes at once: what its cache holds of them and of what is made of them."""


class Block(NamedTuple):
    """Some heads of some entries, and which of their pieces make up words.

    `bags` are the rows of pieces in the order of places, where each place begins, and what each row counts. The others
    are (entry, 1, 1, word) or (entry, 1, 1, further piece): `first` is the first piece of each word, `there` whether it
    has one; `further` are pieces after the first, `place` their words, `counted` 0 where an entry has fewer of them.
    """

    part: tuple[slice, slice]
    bags: tuple[Tensor, Tensor, Tensor]
    first: Tensor
    there: Tensor
    further: Tensor
    place: Tensor
    counted: Tensor


def _a_few_heads_at_a_time(maps: Tensor, words: Words, size: int) -> Tensor:
    """Means of rows, then sums of columns: first pieces are copied, the few others added to them."""
    found = maps.new_empty(*maps.shape[:2], size, size)
    asked = maps.shape[1], size
    if asked not in words.kept:
        words.kept[asked] = list(_blocks_within(words, *asked))
    for block in words.kept[asked]:
        members, begins, weights = block.bags
        own = maps[block.part]
        table = own.reshape(-1, own.shape[-1])
        means = embedding_bag(members, table, begins, mode="sum", per_sample_weights=weights.to(maps.dtype))
        means = means.view(*own.shape[:2], -1, own.shape[-1])[..., :size, :]
        across = (*means.shape[:3], -1)
        sums = torch.gather(means, -1, block.first.expand(across), out=found[block.part])
        if block.further.shape[-1]:
            others = means.gather(-1, block.further.expand(across)).mul_(block.counted)
            sums.scatter_add_(-1, block.place.expand(across), others)
        sums.mul_(block.there)
    return found


def _blocks_within(words: Words, heads: int, size: int) -> Iterator[Block]:
    """The blocks of a batch, and the pieces of the first `size` places."""
    batch, pieces = words.place.shape
    entries = max(1, CELLS_AT_ONCE // (heads * pieces * pieces))
    at_once = heads if entries > 1 else max(1, CELLS_AT_ONCE // (pieces * pieces))
    for row in range(0, batch, entries):
        rows = slice(row, row + entries)
        some = Words(words.count, words.place[rows], words.order[rows], words.starts[rows], words.size[rows])
        columns = [each[:, None, None] for each in _columns_within(some, size)]
        for head in range(0, heads, at_once):
            part = slice(head, min(heads, head + at_once))
            yield Block((rows, part), _bags(some, part.stop - part.start, "mean"), *columns)


def _columns_within(words: Words, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(entry, ...) the last five of a block."""
    order, starts = words.order, words.starts
    places = words.place.gather(1, order)
    first = order.gather(1, starts[:, :size].clamp(max=order.shape[1] - 1))
    later = (places < size) & (starts.gather(1, places) != torch.arange(order.shape[1], device=order.device))
    some = later.int().argsort(dim=1, descending=True, stable=True)[:, : int(later.sum(1).max())]
    counted, there = later.gather(1, some).float(), (words.size[:, :size] > 0).float()
    return first, there, order.gather(1, some), places.gather(1, some).clamp(max=max(0, size - 1)), counted


def _rows(maps: Tensor, words: Words, rows: From) -> Tensor:
    """(batch, head, place, to) from (batch, head, piece, to): every place is a bag of rows."""
    batch, heads, _, targets = maps.shape
    members, begins, weights = _bags(words, heads, rows)
    table = maps.reshape(-1, targets)
    if rows == "max":
        pooled = embedding_bag(members, table, begins, mode="max")
    else:
        pooled = embedding_bag(members, table, begins, mode="sum", per_sample_weights=weights.to(maps.dtype))
    return pooled.view(batch, heads, -1, targets)


def _bags(words: Words, heads: int, rows: From) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of a batch of maps in the order of places, where each place begins, and what each row counts."""
    batch, pieces = words.place.shape
    begin = pieces * torch.arange(batch * heads, device=words.place.device).view(batch, heads, 1)
    members, begins = ((begin + places[:, None]).flatten() for places in (words.order, words.starts))
    return members, begins, _row_weights(words, rows)[:, None].expand(-1, heads, -1).flatten()


def _row_weights(words: Words, rows: From) -> Tensor:
    """(batch, piece) what each piece, in the order of places, gives to its place's row."""
    places = words.place.gather(1, words.order)
    if rows == "mean":
        return 1 / words.size.gather(1, places)
    return (words.starts.gather(1, places) == torch.arange(places.shape[1], device=places.device)).float()


def _columns(maps: Tensor, words: Words) -> Tensor:
    """(batch, head, from, place) from (batch, head, from, piece)."""
    pooled = maps.new_zeros(*maps.shape[:3], words.size.shape[1])
    return pooled.scatter_add_(-1, words.place[:, None, None].expand_as(maps), maps)


def _places(pieces: Pieces, count: int) -> NDArray[np.int64]:
    """The place of each piece: its word, or one of the three after the words."""
    others = np.full(len(Special), Place.OTHER)
    others[Special.CLS], others[Special.SEP] = Place.CLS, Place.SEP
    return np.where(pieces.word >= 0, pieces.word, count + others[pieces.special])
