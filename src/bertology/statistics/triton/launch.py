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
from bertology.statistics.token_tiles import TILE_SIZE, TokenTiles
from bertology.statistics.triton import kernels as typed_kernels

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

kernels: Any = typed_kernels  # the call syntax kernel[grid](...) is unknown to type checkers

FEATURE_SIZE = 16
"""Features of a target token, and weights of a source token: the smallest size of a tensor-core product."""
MAX_TOKENS = 2048
"""Positions up to here are exact in half precision."""
MAX_LISTED_SUMS, MAX_WEIGHTED_SUMS = 16, 2
"""Pair sums that fit into a kernel's registers."""


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """Queries and keys of a layer, (batch, head, token, size), and visibility: everything attention depends on.

    `lengths` is (batch,): all tokens see these first tokens and no others, unless a mask says which. `known_normaliser`
    is the `log_normaliser` if attention itself returned it.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    scaling: float
    lengths: Tensor
    is_padded: bool
    known_normaliser: Tensor | None = None

    @cached_property
    def log_normaliser(self) -> Tensor:
        """(batch, head, from): the natural logarithm of the softmax's sum of each row."""
        if self.known_normaliser is not None:
            return self.known_normaliser
        n_rows, heads, size, _ = self.query.shape
        out = torch.empty((n_rows, heads, size), device=self.query.device)
        kernels.log_normaliser_kernel[self.grid](
            *self.kernel_args, self.lengths, size, heads, out, **self.constants, **self.tile_flags, num_warps=4
        )
        return out

    @property
    def tile_flags(self) -> dict[str, bool]:
        """Whether all tiles are full and visible, unless masked."""
        return {"IN_BOUNDS": not self.is_padded and self.query.shape[2] % TILE_SIZE == 0}

    @property
    def grid(self) -> tuple[int, int, int]:
        """One program for every head, tile of rows and input."""
        n_rows, heads, size, _ = self.query.shape
        return heads, triton.cdiv(size, TILE_SIZE), n_rows

    @cached_property
    def kernel_args(self) -> tuple[Any, ...]:
        """The first arguments of the kernels that compute scores: queries, keys, mask, their strides."""
        query, key, mask = self.query, self.key, self.mask
        mask_strides = (0, 0) if mask is None else (mask.stride(0) if mask.shape[0] > 1 else 0, mask.stride(-2))
        strides = (*query.stride()[:3], *key.stride()[:3], *mask_strides)
        return query, key, query if mask is None else mask, *strides

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Their compile-time arguments."""
        scaling = self.scaling / math.log(2)
        return {"SCALING": scaling, "MASKED": self.mask is not None, "D": self.query.shape[-1], "M": TILE_SIZE}


def kernels_support(query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Whether the kernels support a layer: no unusual head sizes, long inputs or masks per head."""
    if query.shape[-1] not in {16, 32, 64, 128} or query.shape[2] > MAX_TOKENS or query.shape != key.shape:
        return False
    if query.stride(-1) != 1 or key.stride(-1) != 1:
        return False
    return mask is None or (mask.shape[1] == 1 and mask.shape[-2] == query.shape[-2] and mask.stride(-1) == 1)


class KernelFeatures(NamedTuple):
    """Features of the tokens of a batch.

    `target_features` is (batch, token, 4 x 16) in half precision. The features are the four token kinds, non-special,
    1, position, word, and the last two times non-special, then zeros. They are repeated with all after the kinds
    negated, with the kinds alone, and without the kinds. `special_tiles` is (batch,): a bit for each tile, whether it
    has special tokens or padding. `source_weights` is (batch, token, 16): 1 for tokens, non-special tokens, separators;
    the first two times position; the token's fraction of its word, for all and for non-special tokens; both times word.
    """

    target_features: Tensor
    special_tiles: Tensor
    source_weights: Tensor


@cached_per_batch
def kernel_features(batch: TokenBatch) -> KernelFeatures:
    """The features of a batch in the layout of the kernels."""
    pad = torch.nn.functional.pad
    non_special, word = batch.non_special_mask.float(), batch.word_positions.float()
    position = torch.arange(batch.padded_length, device=non_special.device).float().expand_as(word)
    kinds, one = token_kinds(batch), torch.ones_like(position)
    signed = torch.stack([non_special, one, position, word, non_special * position, non_special * word], -1)
    kinds_alone = pad(kinds.float(), (0, FEATURE_SIZE - kinds.shape[-1]))
    signed = pad(signed, (kinds.shape[-1], FEATURE_SIZE - kinds.shape[-1] - signed.shape[-1]))
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
    is_special = pad(~batch.non_special_mask, (0, -batch.padded_length % TILE_SIZE))
    has_special = is_special.unflatten(1, (-1, TILE_SIZE)).any(-1).long()
    return KernelFeatures(
        torch.cat([kinds_alone + signed, kinds_alone - signed, kinds_alone, signed], -1).half(),
        (has_special << torch.arange(has_special.shape[1], device=position.device)).sum(1).int(),
        pad(torch.stack(sources, -1), (0, FEATURE_SIZE - len(sources))).contiguous(),
    )


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


class StatisticOutputs(NamedTuple):
    """Tensors that the kernels write to, in which the layers' heads follow one another along the head axis.

    `rows` is (8, batch, head, from): maximum over all and over non-special targets, entropy over all and over
    non-special targets, mass of non-special targets, attention to the token itself, the previous and the next. `sums`
    is (batch, head, source sum, feature): attention summed over targets with features and sources with weights, see
    `KernelFeatures`; features after the kinds count targets before the source as negative. `pairs` are (batch, head,
    sum), one tensor per bitmap, the listed sums first. `words` is (batch, head, 2, word): the word each word attends to
    most, and the word that attends to it most; -1 if none. Without words it is None.
    """

    rows: Tensor
    sums: Tensor
    pairs: list[Tensor]
    words: Tensor | None


def launch_row_statistics(
    inputs: AttentionInputs, features: KernelFeatures, rows: Tensor, sums: Tensor, first_head: int
) -> None:
    """Write the `rows` and `sums` of one layer, whose heads start at `first_head`; see `StatisticOutputs`."""
    heads, n_tiles, n_rows = inputs.grid
    sums_by_tile = rows.new_empty((n_rows, heads, n_tiles, FEATURE_SIZE, FEATURE_SIZE))
    kernels.row_statistics_kernel[inputs.grid](
        *inputs.kernel_args,
        inputs.lengths,
        inputs.query.shape[2],
        heads,
        rows.shape[2],
        first_head,
        inputs.log_normaliser,
        *features,
        rows,
        sums_by_tile,
        **inputs.constants,
        **inputs.tile_flags,
        F=FEATURE_SIZE,
        num_warps=4,
        maxnreg=168,
    )
    torch.sum(sums_by_tile, 2, out=sums[:, first_head : first_head + heads])


def launch_pair_sums(inputs: AttentionInputs, bitmap: PairBitmap, out: Tensor, first_head: int) -> None:
    """Write attention over the pairs of each sum to `out`, (batch, all heads, sum), the listed sums first."""
    heads, n_tiles, n_rows = inputs.grid
    sums_by_tile = out.new_empty((n_rows, heads, n_tiles, out.shape[2]))
    kernels.pair_sums_kernel[inputs.grid](
        *inputs.kernel_args,
        inputs.lengths,
        inputs.query.shape[2],
        heads,
        inputs.log_normaliser,
        bitmap.tile_bits,
        bitmap.tile_sums,
        bitmap.weights,
        sums_by_tile,
        **inputs.constants,
        **inputs.tile_flags,
        N_LISTED=bitmap.n_listed,
        N_WEIGHTED=bitmap.n_weighted,
        STAGES=2,
        num_warps=4,
    )
    torch.sum(sums_by_tile, 2, out=out[:, first_head : first_head + heads])


def launch_strongest_words(inputs: AttentionInputs, tiles: TokenTiles, out: Tensor, first_head: int) -> None:
    """Write the strongest words of one layer, whose heads start at `first_head`, to `out`."""
    n_rows, heads, size, _ = inputs.query.shape
    n_tiles = tiles.max_tiles
    shape = 2, n_rows, heads, n_tiles, n_tiles, TILE_SIZE
    # Freed after the launch: the rest of the layer reuses the memory.
    parts = torch.empty(shape, dtype=torch.int32, device=out.device).unbind(0)
    kernels.strongest_words_kernel[(n_tiles * n_tiles, n_rows)](
        *inputs.kernel_args,
        size,
        heads,
        inputs.log_normaliser,
        tiles.order,
        tiles.n_tiles,
        tiles.local_words,
        tiles.word_sizes,
        tiles.tile_words,
        *parts,
        n_tiles,
        **inputs.constants,
        num_warps=4,
        num_stages=3,
    )
    kernels.merge_strongest_kernel[(n_tiles, heads, n_rows)](
        tiles.n_tiles,
        tiles.tile_words,
        tiles.word_counts,
        *parts,
        out,
        out.shape[1],
        first_head,
        out.shape[-1],
        M=TILE_SIZE,
        num_warps=2,
    )
