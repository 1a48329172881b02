"""The tokens of a batch in tiles of whole words, the unit in which GPU kernels compute attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertology.encoder.tokens import NO_WORD
from bertology.lazy import torch
from bertology.statistics.batch_features import cached_per_batch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from bertology.arrays import BoolArray
    from bertology.encoder.token_batch import TokenBatch

    Int32Array = NDArray[np.int32]

TILE_SIZE = 64
"""Rows and columns of a tile of attention."""
EMPTY = -1


class TokenTiles(NamedTuple):
    """The tokens of each input in slots, (batch, tile, slot), int32; no word is in two tiles.

    `order` is the position of the token in each slot, -1 in empty slots. `local_words` numbers the words of a tile from
    0, -1 outside words; `word_sizes` is the number of tokens of the slot's word, 1 outside words; `tile_words` is the
    word with each number in a tile, -1 if there is none. `n_tiles` is (batch,), `word_counts` (batch, tile).
    """

    order: Tensor
    local_words: Tensor
    word_sizes: Tensor
    tile_words: Tensor
    n_tiles: Tensor
    word_counts: Tensor

    @property
    def max_tiles(self) -> int:
        """Number of tiles of the longest input."""
        return self.order.shape[1]


@cached_per_batch
def token_tiles(batch: TokenBatch) -> TokenTiles:
    """The tiles of a batch, computed on the host and moved to the device at once."""
    word_ids = batch.padded_array("word_ids", NO_WORD).astype(np.int32)
    order = pack_words(word_ids, batch.is_token, TILE_SIZE)
    assert order is not None, "no word has more tokens than a tile"
    shape = len(order), order.shape[1] // TILE_SIZE, TILE_SIZE
    is_token, row = order >= 0, np.arange(len(order))[:, None]
    words = np.where(is_token, word_ids[row, order], NO_WORD)
    n_tiles = is_token.reshape(shape).any(-1).cumsum(1).argmax(1) + 1  # empty tiles come last
    numbers, sizes, tile_words = number_words(words.reshape(shape))
    arrays = (order.reshape(shape), numbers, sizes, tile_words, n_tiles, (tile_words >= 0).sum(-1))
    return TokenTiles(*_to_device(arrays, batch.device))


def pack_words(word_ids: Int32Array, is_token: BoolArray, tile_size: int) -> Int32Array | None:
    """(batch, slot) the token in each slot, -1 if it is empty, such that no word is in two tiles; None if impossible.

    `word_ids` is (batch, token), -1 outside words. Tokens stay in order, except that a word that would cross the end of
    a tile goes to the next one, and the next tokens that are words of their own, or empty slots, fill its place.
    """
    first_token = _first_tokens(word_ids)
    n_rows, size = word_ids.shape
    cells = first_token + size * np.arange(n_rows)[:, None]
    word_sizes = np.bincount(cells[is_token], minlength=n_rows * size)[cells]
    if word_sizes[is_token].max(initial=0) > tile_size:
        return None
    order = _tokens_in_order(is_token, tile_size)
    if (np.diff(first_token, axis=1) < 0).any():  # the tokens of a word are not adjacent
        order[:, :size] = np.argsort(np.where(is_token, first_token, size), axis=1, kind="stable")
        order[:, :size][~is_token] = EMPTY
    while not _move_crossing_words(order, first_token, word_sizes, tile_size):
        order = np.pad(order, ((0, 0), (0, tile_size)), constant_values=EMPTY)
    return order


def _first_tokens(word_ids: Int32Array) -> Int32Array:
    """(batch, token) the first token of each token's word; a token outside words is its own."""
    n_rows, size = word_ids.shape
    first = np.zeros((n_rows, int(word_ids.max(initial=0)) + 1), np.int32)
    row, position = np.nonzero(word_ids >= 0)
    first[row[::-1], word_ids[row, position][::-1]] = position[::-1]  # of several values the last one stays
    own = np.broadcast_to(np.arange(size, dtype=np.int32), word_ids.shape)
    return np.where(word_ids >= 0, first[np.arange(n_rows)[:, None], word_ids], own)


def _tokens_in_order(is_token: BoolArray, tile_size: int) -> Int32Array:
    n_rows, size = is_token.shape
    order = np.full((n_rows, -(-size // tile_size) * tile_size), EMPTY, np.int32)
    order[:, :size] = np.where(is_token, np.arange(size, dtype=np.int32), EMPTY)
    return order


def _move_crossing_words(
    order: Int32Array, first_token: Int32Array, word_sizes: NDArray[np.intp], tile_size: int
) -> bool:
    """Move words that cross the end of a tile, in place; returns whether there was enough to fill their places."""
    for end in range(tile_size, order.shape[1], tile_size):
        every_row = np.arange(len(order))
        left, right = order[:, end - 1], order[:, end]
        crosses = (left >= 0) & (right >= 0) & (first_token[every_row, left] == first_token[every_row, right])
        rows = np.flatnonzero(crosses)
        if not len(rows):
            continue
        slots = order[rows, end - tile_size :]
        words = np.where(slots >= 0, first_token[rows[:, None], slots], EMPTY)
        n_crossing = (words[:, :tile_size] == words[:, tile_size, None]).sum(1)[:, None]
        can_fill = (slots < 0) | (word_sizes[rows[:, None], slots] == 1)
        can_fill[:, :tile_size] = False
        n_fillers = can_fill.cumsum(1)
        if (n_fillers[:, -1:] < n_crossing).any():
            return False
        is_before = np.arange(slots.shape[1]) < tile_size - n_crossing
        fills = can_fill & (n_fillers <= n_crossing)
        keys = np.where(is_before, 0, np.where(fills, 1, 2)).astype(np.int8)
        order[rows, end - tile_size :] = np.take_along_axis(slots, np.argsort(keys, axis=1, kind="stable"), 1)
    return True


def number_words(words: Int32Array) -> tuple[Int32Array, Int32Array, Int32Array]:
    """The words of each tile, see `TokenTiles`: (batch, tile, slot) numbers, sizes, and the word with each number."""
    in_word = words >= 0
    is_first = in_word.copy()
    is_first[..., 1:] &= words[..., 1:] != words[..., :-1]
    numbers = np.where(in_word, is_first.cumsum(-1) - 1, NO_WORD).astype(np.int32)
    tile = np.arange(words[..., 0].size).reshape(words.shape[:-1])[..., None] * words.shape[-1]
    cells = tile + numbers
    sizes = np.ones(words.shape, np.int32)
    sizes[in_word] = np.bincount(cells[in_word], minlength=words.size)[cells[in_word]]
    tile_words = np.full(words.size, NO_WORD, np.int32)
    tile_words[cells[is_first]] = words[is_first]
    return numbers, sizes, tile_words.reshape(words.shape)


def _to_device(arrays: Sequence[NDArray[Any]], device: str) -> Iterator[Tensor]:
    """The arrays as int32 tensors, moved together."""
    joined = torch.from_numpy(np.concatenate([array.ravel().astype(np.int32) for array in arrays]))
    if device.startswith("cuda"):
        joined = joined.pin_memory().to(device, non_blocking=True)
    parts = joined.split([array.size for array in arrays])
    return (part.view(array.shape) for part, array in zip(parts, arrays, strict=True))
