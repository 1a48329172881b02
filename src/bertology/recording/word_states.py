"""Hidden states of words: the mean over each word's pieces, taken on the device or from a recording of pieces.

One word takes (layers + 1) x width numbers: 20 kB for 12 layers of width 384 in single precision, half of that
where the policy says so. 12,500 sentences of running text are 204,000 words: 4 GB, or 2 GB in half precision, in memory
without a store and on disk with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from bertology.encoder.pieces import Pieces
from bertology.recording.entry import Entry
from bertology.recording.shards import Array

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame


def word_weights(frame: Frame) -> Tensor:
    """(batch, word, piece): what each piece gives to the mean of its word; 0 where it is none of its pieces."""
    import torch

    words = max(entry.pieces.words for entry in frame.entries)
    own = frame.word[:, None] == torch.arange(words, device=frame.word.device)[:, None]
    return own / own.sum(-1, keepdim=True).clamp(min=1)


def means_of_pieces(states: Array, pieces: Pieces) -> Array:
    """(layer, word, width) from (layer, piece, width); zeros for a word without pieces."""
    own = np.arange(pieces.words)[:, None] == pieces.word
    weights = (own / own.sum(1, keepdims=True).clip(min=1)).astype(np.float32)
    return (weights @ states.astype(np.float32)).astype(states.dtype)


class WordStates(Sequence[Array]):
    """The word states of each entry, made of its recorded pieces when asked for: nothing more is kept."""

    def __init__(self, entries: Sequence[Entry], hidden: Sequence[Array]) -> None:
        self._entries = entries
        self._hidden = hidden

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Array]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return means_of_pieces(self._hidden[index], self._entries[index].pieces)
