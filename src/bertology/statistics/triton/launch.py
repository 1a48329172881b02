"""Launch the Triton kernels: attention statistics computed while a tile of attention is in registers.

Needs Triton, which is part of torch's CUDA builds.
"""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import triton

from bertology.lazy import torch
from bertology.statistics.batch_features import cached_per_batch, token_kinds
from bertology.statistics.triton import kernels as typed_kernels

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

kernels: Any = typed_kernels  # the call syntax kernel[grid](...) is unknown to type checkers

TILE_SIZE = 64
"""Rows and columns of a tile of attention."""
N_FEATURES = 16
"""Features of a target token, the smallest size of a tensor-core product; see `KernelFeatures`."""
N_SOURCE_SUMS = 16
"""Weighted sums over source tokens, with the same smallest size; see `KernelFeatures`."""
SPECIAL_CHUNK: int = kernels.SPECIAL_CHUNK.value
MAX_TOKENS = 2048
"""Positions up to here are exact in half precision."""
MAX_LISTED_SUMS, MAX_WEIGHTED_SUMS = 16, 2
"""Pair sums that fit into a kernel's registers."""
BATCH_WORDS = 256
"""Words whose strongest words over all tiles are merged by one program."""
SCALE_EXPONENT = 8
"""Weights times 2 to this power stay within half precision, and small ones lose less."""


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """Queries and keys of a layer, (batch, head, token, size), and visibility: everything attention depends on.

    Visibility comes from the mask or, without one, from `lengths`, (batch,): the number of tokens that all tokens see;
    `is_unpadded` says that these are all tokens.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    scaling: float
    lengths: Tensor
    is_unpadded: bool

    @cached_property
    def kernel_args(self) -> tuple[Any, ...]:
        """The first arguments of every kernel: queries, keys, mask, their strides, sizes."""
        query, key, mask = self.query, self.key, self.mask
        mask_strides = (0, 0) if mask is None else (mask.stride(0) if mask.shape[0] > 1 else 0, mask.stride(-2))
        strides = (*query.stride()[:3], *key.stride()[:3], *mask_strides)
        return query, key, query if mask is None else mask, *strides, self.lengths, query.shape[2], query.shape[1]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The compile-time arguments of every kernel."""
        scaling = self.scaling / math.log(2)
        return {"SCALING": scaling, "MASKED": self.mask is not None, "D": self.query.shape[-1], "M": TILE_SIZE}

    @property
    def tile_flags(self) -> dict[str, bool]:
        """Whether all tiles are full and visible."""
        return {"IN_BOUNDS": self.is_unpadded and self.query.shape[2] % TILE_SIZE == 0}

    @property
    def grid(self) -> tuple[int, int, int]:
        """One program for every head, tile of rows and input."""
        n_rows, heads, size, _ = self.query.shape
        return heads, triton.cdiv(size, TILE_SIZE), n_rows


def kernels_support(query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Whether the kernels support a layer: no unusual head sizes, long inputs or masks per head."""
    if query.shape[-1] not in {16, 32, 64, 128} or query.shape[2] > MAX_TOKENS or query.shape != key.shape:
        return False
    if query.stride(-1) != 1 or key.stride(-1) != 1:
        return False
    return mask is None or (mask.shape[1] == 1 and mask.shape[-2] == query.shape[-2] and mask.stride(-1) == 1)


class KernelFeatures(NamedTuple):
    """Features of the tokens of a batch.

    `target_features` is (batch, token, 5 x features) in half precision. The features are the four token kinds,
    non-special, 1, position, word, and the last two times non-special; they follow as many zeros, are followed by as
    many zeros, and are repeated once negated and once as they are. `source_weights` is (batch, token, 16): 1 for
    tokens, non-special tokens, separators; the first two times position; the token's fraction of its word, for all and
    for non-special tokens; both times word. `special_positions` is (batch, n), filled with -1. `tile_has_special` is
    (batch, tile): whether a tile has special tokens or padding. `lengths` and `padded_lengths` are (batch,) numbers of
    tokens without and with padding.
    """

    target_features: Tensor
    source_weights: Tensor
    special_positions: Tensor
    tile_has_special: Tensor
    lengths: Tensor
    padded_lengths: Tensor


@cached_per_batch
def kernel_features(batch: TokenBatch) -> KernelFeatures:
    """The features of a batch in the layout of the kernels."""
    pad = torch.nn.functional.pad
    non_special, word = batch.non_special_mask.float(), batch.word_positions.float()
    position = torch.arange(batch.padded_length, device=non_special.device).float().expand_as(word)
    kinds, one = token_kinds(batch), torch.ones_like(position)
    features = torch.stack(
        [*kinds.float().unbind(-1), non_special, one, position, word, non_special * position, non_special * word], -1
    )
    features = pad(features, (0, N_FEATURES - features.shape[-1]))
    zeros = torch.zeros_like(features)
    token, separator, fraction = batch.token_mask.float(), kinds[..., 1].float(), batch.word_fractions
    non_special_fraction = fraction * non_special
    sources = [
        token,
        non_special,
        separator,
        token * position,
        non_special * position,
        fraction,
        non_special_fraction,
        fraction * word,
        non_special_fraction * word,
    ]
    is_special = batch.token_mask & ~batch.non_special_mask
    n_special = triton.cdiv(max(1, int(is_special.sum(1).max())), SPECIAL_CHUNK) * SPECIAL_CHUNK
    positions = torch.where(is_special, position, position + batch.padded_length).sort(1).values[:, :n_special]
    positions = torch.where(positions < batch.padded_length, positions, -1)
    positions = pad(positions, (0, n_special - positions.shape[1]), value=-1)
    has_special = pad(~batch.non_special_mask, (0, -batch.padded_length % TILE_SIZE))
    return KernelFeatures(
        torch.cat([zeros, features, zeros, -features, features], -1).half(),
        pad(torch.stack(sources, -1), (0, N_SOURCE_SUMS - len(sources))).contiguous(),
        positions.int().contiguous(),
        has_special.unflatten(1, (-1, TILE_SIZE)).any(-1).int(),
        batch.lengths.int(),
        torch.full_like(batch.lengths, batch.padded_length, dtype=torch.int32),
    )


def launch_row_sums(
    inputs: AttentionInputs,
    features: KernelFeatures,
    log_normaliser: Tensor,
    out: Tensor,
    sums: Tensor,
    first_head: int,
) -> None:
    """Write the row statistics of one layer.

    `log_normaliser`, (batch, head, from), receives the base-2 logarithms of the softmax's sums. `out` is (8, batch, all
    heads, from), in which the layer's heads start at `first_head`: maximum over all and over non-special targets,
    entropy over all and over non-special targets, mass of non-special targets, attention to the token itself, the
    previous and the next. `sums` is (batch, all heads, source sum, 2, feature): attention summed over targets before
    and after the source, see `KernelFeatures`.
    """
    heads, n_tiles, n_rows = inputs.grid
    sums_by_tile = out.new_empty((n_rows, heads, n_tiles, N_SOURCE_SUMS, 2, N_FEATURES))
    kernels.row_sums_kernel[inputs.grid](
        *inputs.kernel_args,
        out.shape[2],
        first_head,
        features.target_features,
        features.special_positions,
        features.tile_has_special,
        features.source_weights,
        log_normaliser,
        out,
        sums_by_tile,
        features.special_positions.shape[1],
        **inputs.constants,
        **inputs.tile_flags,
        F=N_FEATURES,
        num_warps=4,
        maxnreg=128,
    )
    torch.sum(sums_by_tile, 2, out=sums[:, first_head : first_head + heads])


class PairBitmap(NamedTuple):
    """Token pairs in the layout of the kernel.

    `tile_bits` is (batch, tile, tile, two sums, row, 4): a bit for each pair, for the columns that a thread holds; the
    second of two sums has the upper 16 bits. `tile_sums` is (batch, tile, tile): a bit for each sum with pairs in the
    tile. `weights` is (batch, sum, from, to). `n_listed` is even: the last listed sum may be unused.
    """

    tile_bits: Tensor
    tile_sums: Tensor
    weights: Tensor
    n_listed: int
    n_weighted: int


def pair_bitmaps(indices: Tensor, n_listed: int, shape: tuple[int, int], weights: Tensor | None) -> list[PairBitmap]:
    """Listed pairs, (4, pair): batch row, source, target, sum, and weights, as many bitmaps as the kernel needs.

    No pair occurs twice in a sum.
    """
    bitmaps: list[PairBitmap] = []
    n_weighted = 0 if weights is None else weights.shape[1]
    for part in range(max(triton.cdiv(n_listed, MAX_LISTED_SUMS), triton.cdiv(n_weighted, MAX_WEIGHTED_SUMS))):
        first = part * MAX_LISTED_SUMS
        count = min(max(n_listed - first, 0), MAX_LISTED_SUMS)
        is_part = (indices[3] >= first) & (indices[3] < first + count)
        part_indices = indices[:, is_part] if count < n_listed else indices
        weight_slice = slice(part * MAX_WEIGHTED_SUMS, (part + 1) * MAX_WEIGHTED_SUMS)
        part_weights = None if weights is None else weights[:, weight_slice]
        bitmaps.append(_pair_bitmap(part_indices, first, count, shape, part_weights))
    return bitmaps


def _pair_bitmap(
    indices: Tensor, first_sum: int, n_listed: int, shape: tuple[int, int], weights: Tensor | None
) -> PairBitmap:
    n_rows, size = shape
    n_tiles, n_twos = triton.cdiv(size, TILE_SIZE), triton.cdiv(n_listed, 2)
    row, source, target, sum_index = indices
    sum_index = sum_index - first_sum
    tile = (row * n_tiles + source // TILE_SIZE) * n_tiles + target // TILE_SIZE
    column = target % TILE_SIZE
    thread, bit = column % 8 // 2, column // 8 * 2 + column % 2 + 16 * (sum_index % 2)
    cell = ((tile * n_twos + sum_index // 2) * TILE_SIZE + source % TILE_SIZE) * 4 + thread
    tile_bits = torch.zeros((n_rows, n_tiles, n_tiles, n_twos, TILE_SIZE, 4), dtype=torch.int32, device=indices.device)
    tile_bits.view(-1).index_add_(0, cell, (1 << bit).to(torch.int32))
    occurs = torch.zeros((n_rows * n_tiles * n_tiles, n_listed), dtype=torch.int32, device=indices.device)
    occurs[tile, sum_index] = 1
    tile_sums = (occurs << torch.arange(n_listed, device=indices.device)).sum(-1).to(torch.int32)
    if weights is None:
        return PairBitmap(tile_bits, tile_sums, tile_bits, 2 * n_twos, 0)
    return PairBitmap(tile_bits, tile_sums, weights.half().contiguous(), 2 * n_twos, weights.shape[1])


def launch_pair_sums(
    inputs: AttentionInputs, log_normaliser: Tensor, bitmap: PairBitmap, out: Tensor, first_head: int
) -> None:
    """Write attention over the pairs of each sum to `out`, (batch, all heads, sum), the listed sums first."""
    heads, n_tiles, n_rows = inputs.grid
    constants = {
        "N_LISTED": bitmap.n_listed,
        "N_WEIGHTED": bitmap.n_weighted,
        "N_SUMS": out.shape[2],
        "SCALE_EXPONENT": SCALE_EXPONENT,
    }
    # Three programs per multiprocessor are faster than two, although some registers spill.
    tuning = {"num_warps": 4, "num_stages": 2, "maxnreg": 168} if bitmap.n_weighted else {"num_warps": 4}
    kernels.pair_sums_kernel[(heads, n_rows)](
        *inputs.kernel_args,
        out.shape[1],
        first_head,
        log_normaliser,
        bitmap.tile_bits,
        bitmap.tile_sums,
        bitmap.weights,
        out,
        n_tiles,
        **inputs.constants,
        **inputs.tile_flags,
        **constants,
        **tuning,
    )


class WordTiles(NamedTuple):
    """A batch split into tiles of whole words: (batch, tile) or (batch, token), int32.

    `first_token`, `n_tokens`, `first_word` and `n_words` describe each tile: at most `TILE_SIZE` tokens and words, each
    word with a token. `word_ids` is the word of each token, -1 outside words. `token_weights` is (batch, word): the
    weight of a token in its word.
    """

    first_token: Tensor
    n_tokens: Tensor
    first_word: Tensor
    n_words: Tensor
    word_ids: Tensor
    token_weights: Tensor


def word_buffer(tiles: WordTiles, heads: int) -> Tensor:
    """(2, batch, head, tile, word): a buffer for the strongest words within each tile, reused for every layer."""
    (n_rows, max_words), n_tiles = tiles.token_weights.shape, tiles.first_token.shape[1]
    shape = (2, n_rows, heads, n_tiles, max_words)
    return torch.full(shape, -1, dtype=torch.int32, device=tiles.token_weights.device)


def launch_strongest_words(
    inputs: AttentionInputs, log_normaliser: Tensor, tiles: WordTiles, buffer: Tensor, out: Tensor, first_head: int
) -> None:
    """Write the word each word attends to most, and the word that attends to it most, to `out`; -1 if none.

    `out` is (batch, all heads, 2, word); `buffer` comes from `word_buffer`.
    """
    heads, _, n_rows = inputs.grid
    max_words, n_tiles = tiles.token_weights.shape[1], tiles.first_token.shape[1]
    kernels.strongest_words_kernel[(n_tiles * n_tiles, n_rows)](
        *inputs.kernel_args,
        log_normaliser,
        *tiles,
        *buffer.unbind(0),
        max_words,
        n_tiles,
        **inputs.constants,
        num_warps=4,
        num_stages=2,
    )
    grid = (triton.cdiv(max_words, BATCH_WORDS), heads, n_rows)
    kernels.merge_strongest_kernel[grid](
        buffer,
        tiles.first_word,
        out,
        out.shape[1],
        first_head,
        max_words,
        n_tiles,
        M=TILE_SIZE,
        N=BATCH_WORDS,
        num_warps=4,
    )
