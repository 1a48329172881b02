"""From attention between pieces to attention between words (clark2019, section 4.1), on the device, inside the pass.

Attention **to** a word is the sum over its pieces, attention **from** a word the mean over its pieces: rows still sum
to 1. Words come first, at their own index; three more places follow for what is no word, see `Place`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from bertology.encoder.pieces import Pieces, Special
from bertology.recording.frame import Frame

From = Literal["mean", "first", "max"]


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


def words_of(frame: Frame) -> Words:
    """The words of a batch."""
    count = max(entry.pieces.words for entry in frame.entries)
    padding = count + len(Place)
    place = np.full((len(frame.entries), frame.width), padding, np.int64)
    for row, entry in enumerate(frame.entries):
        place[row, : len(entry.pieces)] = _places(entry.pieces, count)
    size = (place[:, :, None] == np.arange(padding + 1)).sum(1)
    starts = np.cumsum(size, axis=1) - size
    arrays = (place, np.argsort(place, axis=1, kind="stable"), starts, size)
    return Words(count, *(torch.from_numpy(array).to(frame.device) for array in arrays))


def to_words(maps: Tensor, words: Words, *, rows: From = "mean", special: bool = False) -> Tensor:
    """(batch, head, from_word, to_word) from (batch, head, from, to).

    `rows` is how the rows of a word's pieces become one: their mean, the first piece's, or their maximum scaled to a
    sum of 1. With `special` the three further places are kept on both axes and every row of a word that is there sums
    to 1; without, they are left out and nothing is scaled. Rows and columns of words without pieces are 0.
    """
    if rows == "max":
        pooled = _rows(_columns(maps, words), words, rows)
        pooled = pooled / pooled.sum(-1, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)
    else:
        pooled = _columns(_rows(maps, words, rows), words)
    size = words.count + (len(Place) if special else 0)
    return pooled[..., :size, :size]


def _rows(maps: Tensor, words: Words, rows: From) -> Tensor:
    """(batch, head, place, to) from (batch, head, piece, to): every place is a bag of rows."""
    batch, heads, pieces, targets = maps.shape
    begin = pieces * torch.arange(batch * heads, device=maps.device).view(batch, heads, 1)
    bags = (begin + words.starts[:, None]).flatten()
    members = (begin + words.order[:, None]).flatten()
    table = maps.reshape(-1, targets)
    if rows == "max":
        pooled = embedding_bag(members, table, bags, mode="max")
    else:
        weights = _row_weights(words, rows).to(maps.dtype)[:, None].expand(-1, heads, -1).flatten()
        pooled = embedding_bag(members, table, bags, mode="sum", per_sample_weights=weights)
    return pooled.view(batch, heads, -1, targets)


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


def _places(pieces: Pieces, count: int) -> list[int]:
    """The place of each piece: its word, or one of the three after the words."""
    kinds = {Special.CLS: Place.CLS, Special.SEP: Place.SEP}
    return [
        word if word >= 0 else count + kinds.get(Special(kind), Place.OTHER)
        for word, kind in zip(pieces.word.tolist(), pieces.special.tolist(), strict=True)
    ]
