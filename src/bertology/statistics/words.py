"""Attention between words from attention between tokens (Clark et al. 2019, section 4.1), computed in the pass.

Attention **to** a word is the sum over its tokens, attention **from** a word the mean over its tokens, so that rows
still sum to 1. Words come first, at their own index; three further slots hold tokens outside words, see `NonWordSlot`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.statistics.triton.accumulate import FusedLayers

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

RowPooling = Literal["mean", "first", "max"]
"""How the rows of a word's tokens become one: mean, first token, or maximum renormalised to a sum of 1."""
MAX_HALF_INTEGER = 2048
CHUNK_CELLS = 2**19
"""Attention weights processed at once on a CPU: they and the intermediate results fit into its cache."""


class NonWordSlot(IntEnum):
    """Slots of tokens outside words, counted from the end of the words of the longest input."""

    CLS = 0
    SEP = 1
    OTHER = 2


@dataclass(frozen=True)
class WordSlots:
    """The tokens that make up the words of a batch; see `word_slots`.

    `max_words` is the number of words of the longest input. `slot` is (batch, token): a word, a `NonWordSlot` after the
    words, or the last slot, of padding. `token_order` lists the tokens by slot; `slot_starts`, (batch, slot), is where
    each slot begins in that list, and `slot_sizes`, (batch, slot), its number of tokens. `max_word_tokens` is the
    number of tokens of the longest word.
    """

    max_words: int
    max_word_tokens: int
    slot: Tensor
    token_order: Tensor
    slot_starts: Tensor
    slot_sizes: Tensor

    @property
    def has_tokens(self) -> Tensor:
        """(batch, word): True for words with at least one token."""
        return self.slot_sizes[:, : self.max_words] > 0

    @property
    def index_dtype(self) -> torch.dtype:
        """The smallest floating-point type that holds word indices exactly."""
        return torch.float16 if self.max_words <= MAX_HALF_INTEGER else torch.float32

    @cached_property
    def tile_cache(self) -> dict[tuple[int, int], list[HeadTile]]:
        """Tiles of `word_attention` by number of heads and number of slots."""
        return {}


def strongest_words(layer: LayerActivations, words: WordSlots, excluded_pairs: Tensor, pooling: RowPooling) -> Tensor:
    """(batch, head, 4, word): the word each word attends to most, the word that attends to it most, and their ties.

    `excluded_pairs` is (batch, 1, word, word). -1 where all pairs are excluded. The last two rows have the number of
    equally strong words, usually 1, of which a random one is taken, the same for all heads. The Triton kernels do not
    count them and leave these rows out: in half precision many weights are equal that are not.
    """
    if isinstance(layer, FusedLayers):
        return layer.statistics.strongest_words(words)
    if not words.max_words:
        shape = len(words.slot_sizes), layer.heads, 4, 0
        return torch.empty(shape, dtype=words.index_dtype, device=words.slot_sizes.device)
    attention = word_attention(layer.attention, words, pooling=pooling).masked_fill(excluded_pairs, -1.0)
    rows = [_strongest_and_ties(attention, axis) for axis in (-1, -2)]
    return torch.stack([*(index for index, _ in rows), *(ties for _, ties in rows)], 2).to(words.index_dtype)


def _strongest_and_ties(attention: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The index of the highest weight along an axis, and how many weights are as high; -1 and 0 if all are excluded."""
    weight, index = attention.max(axis)
    is_tied = attention == weight.unsqueeze(axis)
    ties = is_tied.sum(axis)
    if bool(((ties > 1) & (weight >= 0)).any()):
        index = torch.where(is_tied, _random_order(attention.shape[-1], attention.device), -1.0).argmax(axis)
    is_excluded = weight < 0
    return index.masked_fill(is_excluded, -1), ties.masked_fill(is_excluded, 0)


def _random_order(n_words: int, device: torch.device) -> Tensor:
    """(word, word) pseudo-random numbers from 0 to 1 that depend only on the two words, not on the batch."""
    word = torch.arange(n_words, dtype=torch.float64, device=device)
    return (torch.sin(12.9898 * (word[:, None] + 1) + 78.233 * (word + 1)) * 43758.5453).frac().abs()


def word_slots(batch: TokenBatch) -> WordSlots:
    """The word slots of a batch."""
    max_words = max(recorded.tokens.n_words for recorded in batch.inputs)
    padding = max_words + len(NonWordSlot)
    word_ids, kinds = (batch.padded_array(field, 0) for field in ("word_ids", "special_kinds"))
    slot_of_kind = np.full(len(SpecialToken), NonWordSlot.OTHER)
    slot_of_kind[SpecialToken.CLS], slot_of_kind[SpecialToken.SEP] = NonWordSlot.CLS, NonWordSlot.SEP
    slot = np.where(word_ids >= 0, word_ids, max_words + slot_of_kind[kinds])
    slot[~batch.is_token] = padding
    cells = slot + (padding + 1) * np.arange(len(slot))[:, None]
    sizes = np.bincount(cells.ravel(), minlength=len(slot) * (padding + 1)).reshape(len(slot), -1)
    starts = np.cumsum(sizes, axis=1) - sizes
    arrays = (slot, np.argsort(slot, axis=1, kind="stable"), starts, sizes)
    max_word_tokens = int(sizes[:, :max_words].max(initial=0))
    return WordSlots(max_words, max_word_tokens, *(torch.from_numpy(array).to(batch.device) for array in arrays))


def word_attention(
    attention: Tensor, words: WordSlots, *, pooling: RowPooling = "mean", include_special: bool = False
) -> Tensor:
    """(batch, head, from_word, to_word) from (batch, head, from, to).

    With `include_special` both axes keep the three non-word slots and every row of a word with tokens sums to 1;
    without, they are dropped and nothing is rescaled. Rows and columns of words without tokens are 0.
    """
    size = words.max_words + (len(NonWordSlot) if include_special else 0)
    if pooling == "mean" and attention.device.type == "cpu" and not attention.requires_grad:
        return _pool_in_chunks(attention, words, size)
    if pooling == "max":
        pooled = _pool_rows(_pool_columns(attention, words), words, pooling)
        pooled = pooled / pooled.sum(-1, keepdim=True).clamp(min=torch.finfo(attention.dtype).tiny)
    else:
        pooled = _pool_columns(_pool_rows(attention, words, pooling), words)
    return pooled[..., :size, :size]


class HeadTile(NamedTuple):
    """Some heads of some inputs, and the tokens that make up their words.

    `row_bags` are the rows in slot order, the start of each slot, and the weight of each row. The other tensors are
    (input, 1, 1, word) or (input, 1, 1, extra token): the first token of each word and whether it has one; the tokens
    after the first, their slots, and their weights, 0 where an input has fewer of them.
    """

    slices: tuple[slice, slice]
    row_bags: tuple[Tensor, Tensor, Tensor]
    first_tokens: Tensor
    has_tokens: Tensor
    extra_tokens: Tensor
    extra_slots: Tensor
    extra_weights: Tensor


def _pool_in_chunks(attention: Tensor, words: WordSlots, size: int) -> Tensor:
    """Average rows, then sum columns: first tokens are copied, the few further ones added."""
    out = attention.new_empty(*attention.shape[:2], size, size)
    key = attention.shape[1], size
    if key not in words.tile_cache:
        words.tile_cache[key] = list(_head_tiles(words, *key))
    for tile in words.tile_cache[key]:
        chunk = attention[tile.slices]
        means = _sum_bags(chunk.reshape(-1, chunk.shape[-1]), tile.row_bags)
        means = means.view(*chunk.shape[:2], -1, chunk.shape[-1])[..., :size, :]
        across = (*means.shape[:3], -1)
        sums = torch.gather(means, -1, tile.first_tokens.expand(across), out=out[tile.slices])
        if tile.extra_tokens.shape[-1]:
            extra = means.gather(-1, tile.extra_tokens.expand(across)).mul_(tile.extra_weights)
            sums.scatter_add_(-1, tile.extra_slots.expand(across), extra)
        sums.mul_(tile.has_tokens)
    return out


def _head_tiles(words: WordSlots, heads: int, size: int) -> Iterator[HeadTile]:
    """The tiles of a batch, for the tokens of the first `size` slots."""
    n_rows, n_tokens = words.slot.shape
    chunk_rows = max(1, CHUNK_CELLS // (heads * n_tokens * n_tokens))
    chunk_heads = heads if chunk_rows > 1 else max(1, CHUNK_CELLS // (n_tokens * n_tokens))
    for row in range(0, n_rows, chunk_rows):
        rows = slice(row, row + chunk_rows)
        tensors = (words.slot, words.token_order, words.slot_starts, words.slot_sizes)
        subset = WordSlots(words.max_words, words.max_word_tokens, *(tensor[rows] for tensor in tensors))
        columns = [tensor[:, None, None] for tensor in _column_indices(subset, size)]
        for head in range(0, heads, chunk_heads):
            chunk = slice(head, min(heads, head + chunk_heads))
            yield HeadTile((rows, chunk), _row_bags(subset, chunk.stop - chunk.start, "mean"), *columns)


def _column_indices(words: WordSlots, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The last five fields of a `HeadTile`, (input, ...)."""
    order, starts = words.token_order, words.slot_starts
    slots = words.slot.gather(1, order)
    first = order.gather(1, starts[:, :size].clamp(max=order.shape[1] - 1))
    is_extra = (slots < size) & (starts.gather(1, slots) != torch.arange(order.shape[1], device=order.device))
    indices = is_extra.int().argsort(dim=1, descending=True, stable=True)[:, : int(is_extra.sum(1).max())]
    weights, has_tokens = is_extra.gather(1, indices).float(), (words.slot_sizes[:, :size] > 0).float()
    extra_slots = slots.gather(1, indices).clamp(max=max(0, size - 1))
    return first, has_tokens, order.gather(1, indices), extra_slots, weights


def _pool_rows(attention: Tensor, words: WordSlots, pooling: RowPooling) -> Tensor:
    """(batch, head, slot, to) from (batch, head, token, to)."""
    n_rows, heads, _, n_targets = attention.shape
    bags = _row_bags(words, heads, pooling)
    table = attention.reshape(-1, n_targets)
    if pooling == "max":
        pooled = torch.nn.functional.embedding_bag(bags[0], table, bags[1], mode="max")
    else:
        pooled = _sum_bags(table, bags)
    return pooled.view(n_rows, heads, -1, n_targets)


def _sum_bags(table: Tensor, bags: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """(bag, column): weighted sums of rows of the table."""
    members, starts, weights = bags
    return torch.nn.functional.embedding_bag(
        members, table, starts, mode="sum", per_sample_weights=weights.to(table.dtype)
    )


def _row_bags(words: WordSlots, heads: int, pooling: RowPooling) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of a batch of attention patterns in slot order, the start of each slot, and the weight of each row."""
    n_rows, n_tokens = words.slot.shape
    first_row = n_tokens * torch.arange(n_rows * heads, device=words.slot.device).view(n_rows, heads, 1)
    members, starts = ((first_row + indices[:, None]).flatten() for indices in (words.token_order, words.slot_starts))
    return members, starts, _row_weights(words, pooling)[:, None].expand(-1, heads, -1).flatten()


def _row_weights(words: WordSlots, pooling: RowPooling) -> Tensor:
    """(batch, token) weight of each token, in slot order, in the row of its slot."""
    slots = words.slot.gather(1, words.token_order)
    if pooling == "mean":
        return 1 / words.slot_sizes.gather(1, slots)
    return (words.slot_starts.gather(1, slots) == torch.arange(slots.shape[1], device=slots.device)).float()


def _pool_columns(attention: Tensor, words: WordSlots) -> Tensor:
    """(batch, head, from, slot) from (batch, head, from, token)."""
    pooled = attention.new_zeros(*attention.shape[:3], words.slot_sizes.shape[1])
    return pooled.scatter_add_(-1, words.slot[:, None, None].expand_as(attention), attention)


DIRECTIONS = ("attends to", "attended by")
"""The first rows of `strongest_words`; the ties of both follow if they were counted."""
NO_WORD = -1
"""The value for a word without tokens, or without another word in the input."""
