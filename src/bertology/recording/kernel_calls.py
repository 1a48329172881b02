"""Statistics of attention on an accelerator, taken while a piece of a map is in registers: no map is ever written.

Needs Triton, which comes with torch where it is built for CUDA.
"""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from bertology.recording import kernels as typed

kernels: Any = typed  # what Triton makes of a function is called in a way that no checker knows

SIDE = 64
"""Rows and columns of a piece of a map."""
FEATURES = 16
"""What is known of each target, the least a matrix unit takes: see `features`."""
LONGEST = 2048
"""Places up to here are exact in half precision."""


class Asked(NamedTuple):
    """Queries and keys of a layer, (batch, head, piece, size), and what may be seen: all that its maps follow from."""

    query: Tensor
    key: Tensor
    mask: Tensor | None
    scaling: float

    @property
    def given(self) -> tuple[Any, ...]:
        """What every kernel takes first: queries, keys, mask, how far entries, heads and rows lie apart, sizes."""
        query, key, mask = self.query, self.key, self.mask
        steps = (0, 0) if mask is None else (mask.stride(0) if mask.shape[0] > 1 else 0, mask.stride(-2))
        strides = (*query.stride()[:3], *key.stride()[:3], *steps)
        return query, key, query if mask is None else mask, *strides, query.shape[2], query.shape[1]

    @property
    def constants(self) -> dict[str, Any]:
        """What every kernel is compiled for."""
        return {"SCALING": self.scaling / math.log(2), "MASKED": self.mask is not None, "D": self.query.shape[-1]}


def asked_of(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> Asked | None:
    """What the kernels take; None where they cannot: odd sizes of heads, long inputs, a mask for each head."""
    if query.shape[-1] not in {16, 32, 64, 128} or query.shape[2] > LONGEST or query.shape != key.shape:
        return None
    if query.stride(-1) != 1 or key.stride(-1) != 1:
        return None
    if mask is not None and (mask.shape[1] != 1 or mask.shape[-2] != query.shape[-2] or mask.stride(-1) != 1):
        return None
    return Asked(query, key, mask, scaling)


class RowSums(NamedTuple):
    """Along each row, (batch, head, from) float32: see `Rows`. `normaliser` is the logarithm of the softmax's sum.

    `kinds` has a further axis, as `features` has it. `distances` is (batch, head, from, 4): in pieces to all targets
    and to ordinary ones, then in words.
    """

    normaliser: Tensor
    peak: Tensor
    ordinary_peak: Tensor
    information: Tensor
    ordinary_information: Tensor
    ordinary: Tensor
    kinds: Tensor
    distances: Tensor


def features(kinds: Tensor, ordinary: Tensor, word_place: Tensor) -> Tensor:
    """(batch, piece, feature) in half precision: four kinds, ordinary, 1, place, word; the last three if ordinary."""
    place = torch.arange(ordinary.shape[1], device=ordinary.device).expand_as(word_place)
    known = torch.stack([torch.ones_like(place), place, word_place], -1)
    chosen = ordinary.unsqueeze(-1)
    columns = torch.cat([kinds, chosen, known, known * chosen], -1)
    return torch.nn.functional.pad(columns.half(), (0, FEATURES - columns.shape[-1])).contiguous()


def row_sums(asked: Asked, known: Tensor) -> RowSums:
    """What each row sums to; `known` is what `features` made of the batch."""
    batch, heads, size, _ = asked.query.shape
    found = asked.query.new_empty((5, batch, heads, size), dtype=torch.float32)
    sums, signed = found.new_empty((2, batch, heads, size, FEATURES))
    given = (*asked.given, known, found, sums, signed)
    kernels.row_sums[(heads, triton.cdiv(size, SIDE), batch)](
        *given, **asked.constants, M=SIDE, F=FEATURES, num_warps=4
    )
    # The sum of a |j - i| is the sum of a j less that of a i, the other way round for what stands before.
    own = known[:, None, :, 6:8].float()
    apart = signed[..., 5:11].unflatten(-1, (2, 3))
    distances = apart[..., 1:] - apart[..., :1] * own.unsqueeze(-2)
    normaliser, peak, ordinary_peak, information, ordinary_information = found.unbind(0)
    return RowSums(
        normaliser,
        peak,
        ordinary_peak,
        information,
        ordinary_information,
        sums[..., 4],
        sums[..., :4],
        distances.transpose(-1, -2).flatten(-2),
    )


class Marked(NamedTuple):
    """Pairs as the kernel takes them.

    `marks` is (batch, from, to) int32, a bit for each sum that a pair counts for; `all_marks` (batch, block, block) the
    bits that occur in a piece of the map; `weights` (batch, sum, from, to) or None.
    """

    marks: Tensor
    all_marks: Tensor
    weights: Tensor | None
    listed: int


def marked(places: Tensor, listed: int, shape: tuple[int, int], weights: Tensor | None) -> Marked:
    """From listed pairs, (4, pair): batch row, source, target, sum; every pair stands once for a sum."""
    batch, size = shape
    row, source, target, column = places
    marks = torch.zeros((batch, size, size), dtype=torch.int32, device=places.device)
    marks.view(-1).index_add_(0, (row * size + source) * size + target, (1 << column).to(torch.int32))
    blocks = triton.cdiv(size, SIDE)
    occurs = torch.zeros((batch * blocks * blocks, listed), dtype=torch.int64, device=places.device)
    occurs[(row * blocks + source // SIDE) * blocks + target // SIDE, column] = 1
    powers = 1 << torch.arange(listed, device=places.device)
    halved = None if weights is None else weights.half().contiguous()
    return Marked(marks, (occurs * powers).sum(-1).to(torch.int32), halved, listed)


def pair_sums(asked: Asked, normaliser: Tensor, pairs: Marked) -> Tensor:
    """(batch, head, sum) float32: attention over the pairs of each sum, the listed ones first."""
    batch, heads, size, _ = asked.query.shape
    weighed = 0 if pairs.weights is None else pairs.weights.shape[1]
    sums = triton.next_power_of_2(pairs.listed + weighed)
    blocks = triton.cdiv(size, SIDE)
    found = asked.query.new_empty((batch, heads, blocks, sums), dtype=torch.float32)
    weights: Any = pairs.marks if pairs.weights is None else pairs.weights
    given = (*asked.given, normaliser, pairs.marks, pairs.all_marks, weights, found)
    compiled = {**asked.constants, "M": SIDE, "LISTED": pairs.listed, "WEIGHED": weighed, "SUMS": sums}
    kernels.pair_sums[(heads, blocks, batch)](*given, **compiled, num_warps=4)
    return found.sum(2)[..., : pairs.listed + weighed]


class WordBlocks(NamedTuple):
    """A batch cut into blocks of whole words: (batch, block) or (batch, piece), int32.

    `start` and `pieces` are the first piece of a block and how many it has, `first_word` and `word_count` the same of
    words, at most `SIDE` of either; `word` is the word of a piece, -1 for none. `share` is (batch, word): what a piece
    counts in its word, 0 for words without pieces.
    """

    start: Tensor
    pieces: Tensor
    first_word: Tensor
    word_count: Tensor
    word: Tensor
    share: Tensor


class Strongest(NamedTuple):
    """(batch, head, word): the strongest other word of each and its weight; -1 for both where there is none."""

    place: Tensor
    weight: Tensor


def strongest_words(asked: Asked, normaliser: Tensor, blocks: WordBlocks) -> tuple[Strongest, Strongest]:
    """What each word attends to most, and what attends most to it."""
    batch, heads = asked.query.shape[:2]
    words, number = blocks.share.shape[1], blocks.start.shape[1]
    found = torch.full((2, batch, heads, number, words), -1, dtype=torch.int32, device=normaliser.device)
    given = (*asked.given, normaliser, *blocks, *found.unbind(0), words, number)
    kernels.strongest_words[(number * number, batch)](*given, **asked.constants, M=SIDE, num_warps=4)
    best, block = found.max(3)
    first = blocks.first_word[None, :, None, :].expand(2, -1, heads, -1)
    place = first.gather(-1, block) + SIDE - 1 - (best & (SIDE - 1))
    weight = (best & -SIDE).view(torch.float32)
    one, other = (torch.where(best < 0, -1, value) for value in (place, weight))
    return Strongest(one[0], other[0]), Strongest(one[1], other[1])
