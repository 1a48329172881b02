"""Statistics of attention on an accelerator, taken while a piece of a map is in registers: no map is ever written.

Needs Triton, which comes with torch where it is built for CUDA.
"""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.nn.functional import pad

from bertology.recording import kernels as typed

if TYPE_CHECKING:
    from bertology.recording.frame import Frame

kernels: Any = typed  # what Triton makes of a function is called in a way that no checker knows

SIDE = 64
"""Rows and columns of a piece of a map."""
FEATURES = 16
"""What is known of each target, the least a matrix unit takes: see `Known`."""
SOURCE_SUMS = 16
"""In how many ways sources are summed over, the same least; see `Known`."""
SPECIAL: int = kernels.SPECIAL.value
"""Special pieces are looked at so many at a time."""
LONGEST = 2048
"""Places up to here are exact in half precision."""
LISTED_AT_ONCE, WEIGHED_AT_ONCE = 16, 2
"""How many sums over pairs a kernel has registers for."""
WORDS_AT_ONCE = 256
"""For how many words the strongest of all blocks are found together."""
RAISED = 8
"""Weights times 2 to this stay within half precision, and lose less of what is small."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries and keys of a layer, (batch, head, piece, size), and what may be seen: all that its maps follow from.

    What may be seen is told by the mask, or, where there is none, by `limits`: (batch,) how many pieces, by all of
    them; `full` says that it is all of them.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    scaling: float
    limits: Tensor
    full: bool

    @cached_property
    def given(self) -> tuple[Any, ...]:
        """What every kernel takes first: queries, keys, mask, how far entries, heads and rows lie apart, sizes."""
        query, key, mask = self.query, self.key, self.mask
        steps = (0, 0) if mask is None else (mask.stride(0) if mask.shape[0] > 1 else 0, mask.stride(-2))
        strides = (*query.stride()[:3], *key.stride()[:3], *steps)
        return query, key, query if mask is None else mask, *strides, self.limits, query.shape[2], query.shape[1]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """What every kernel is compiled for."""
        scaling = self.scaling / math.log(2)
        return {"SCALING": scaling, "MASKED": self.mask is not None, "D": self.query.shape[-1], "M": SIDE}

    @property
    def even(self) -> dict[str, bool]:
        """Whether maps are made of whole pieces, all of which may be seen."""
        return {"INSIDE": self.full and self.query.shape[2] % SIDE == 0}

    @property
    def grid(self) -> tuple[int, int, int]:
        """A program for every head, block of rows and entry."""
        batch, heads, size, _ = self.query.shape
        return heads, triton.cdiv(size, SIDE), batch


def can_take(query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Whether the kernels can take a layer: not with odd sizes of heads, long inputs, a mask for each head."""
    if query.shape[-1] not in {16, 32, 64, 128} or query.shape[2] > LONGEST or query.shape != key.shape:
        return False
    if query.stride(-1) != 1 or key.stride(-1) != 1:
        return False
    return mask is None or (mask.shape[1] == 1 and mask.shape[-2] == query.shape[-2] and mask.stride(-1) == 1)


class Known(NamedTuple):
    """What is known of the pieces of a batch.

    `targets` is (batch, piece, 5 features) in half precision: features are the four kinds, ordinary, 1, place, word,
    the last two if ordinary; they stand between as many zeros on either side, and again, once negative and once not.
    `sources` is (batch, piece, 16): what a row counts where it is real, ordinary, a separator; as real and as ordinary
    times its place; by its share of its word, ordinary or not, and both times its word. `special` is (batch, n) the
    places of special pieces, -1 for none; `has_special` (batch, block) whether a block has any, or padding. `lengths`
    is (batch,) how many pieces are real, and `width` (batch,) how many there are.
    """

    targets: Tensor
    sources: Tensor
    special: Tensor
    has_special: Tensor
    lengths: Tensor
    width: Tensor


def known_of(frame: Frame) -> Known:
    """What the kernels know of a batch."""
    ordinary, word = frame.ordinary.float(), frame.word_place.float()
    place = torch.arange(frame.width, device=ordinary.device).float().expand_as(word)
    one = torch.ones_like(place)
    features = torch.stack(
        [*frame.kinds.float().unbind(-1), ordinary, one, place, word, ordinary * place, ordinary * word], -1
    )
    features = pad(features, (0, FEATURES - features.shape[-1]))
    nothing = torch.zeros_like(features)
    real, separator, share = frame.real.float(), frame.kinds[..., 1].float(), frame.word_share
    inner = share * ordinary
    sources = [real, ordinary, separator, real * place, ordinary * place, share, inner, share * word, inner * word]
    special = frame.real & ~frame.ordinary
    most = triton.cdiv(max(1, int(special.sum(1).max())), SPECIAL) * SPECIAL
    places = torch.where(special, place, place + frame.width).sort(1).values[:, :most]
    places = pad(torch.where(places < frame.width, places, -1), (0, most - places.shape[1]), value=-1)
    odd = pad(~frame.ordinary, (0, -frame.width % SIDE)).unflatten(1, (-1, SIDE)).any(-1)
    return Known(
        torch.cat([nothing, features, nothing, -features, features], -1).half(),
        pad(torch.stack(sources, -1), (0, SOURCE_SUMS - len(sources))).contiguous(),
        places.int().contiguous(),
        odd.int(),
        frame.lengths.int(),
        torch.full_like(frame.lengths, frame.width, dtype=torch.int32),
    )


def row_sums(asked: Asked, known: Known, normaliser: Tensor, found: Tensor, sums: Tensor, first: int) -> None:
    """Write what rows come to.

    `normaliser`, (batch, head, from), gets the logarithms, to the base 2, of the softmax's sums.
    `found` is (8, batch, all heads, from), of which `first` is the first head of this layer: the highest weights of all
    targets and of ordinary ones, information over all targets and over ordinary ones, the share of ordinary ones, what
    a piece gives to itself, to the previous and to the next. `sums` is (batch, all heads, source, 2, feature): sums of
    attention over all targets before and after, as `Known` has them.
    """
    heads, blocks, batch = asked.grid
    by_block = found.new_empty((batch, heads, blocks, SOURCE_SUMS, 2, FEATURES))
    kept = (known.targets, known.special, known.has_special, known.sources, normaliser, found, by_block)
    given = (*asked.given, found.shape[2], first, *kept, known.special.shape[1])
    kernels.row_sums[asked.grid](*given, **asked.constants, **asked.even, F=FEATURES, num_warps=4, maxnreg=128)
    torch.sum(by_block, 2, out=sums[:, first : first + heads])


class Marked(NamedTuple):
    """Pairs as the kernel takes them.

    `marks` is (batch, block, block, two sums, row, 4): a bit for each pair, of the columns that a thread has; the
    second of two sums has the upper 16 bits. `all_marks` (batch, block, block) has a bit for each sum that occurs in a
    piece of the map. `weights` is (batch, sum, from, to). `listed` is even: there may be one sum too many.
    """

    marks: Tensor
    all_marks: Tensor
    weights: Tensor
    listed: int
    weighed: int


def marked(places: Tensor, listed: int, shape: tuple[int, int], weights: Tensor | None) -> list[Marked]:
    """Listed pairs, (4, pair): batch row, source, target, sum, and weights, in as many parts as the kernel needs.

    Every pair stands once for a sum.
    """
    found: list[Marked] = []
    weighed = 0 if weights is None else weights.shape[1]
    for number in range(max(triton.cdiv(listed, LISTED_AT_ONCE), triton.cdiv(weighed, WEIGHED_AT_ONCE))):
        first = number * LISTED_AT_ONCE
        count = min(max(listed - first, 0), LISTED_AT_ONCE)
        some = places[:, (places[3] >= first) & (places[3] < first + count)] if count < listed else places
        own = None if weights is None else weights[:, number * WEIGHED_AT_ONCE : (number + 1) * WEIGHED_AT_ONCE]
        found.append(_marked(some, first, count, shape, own))
    return found


def _marked(places: Tensor, first: int, listed: int, shape: tuple[int, int], weights: Tensor | None) -> Marked:
    batch, size = shape
    blocks, pairs = triton.cdiv(size, SIDE), triton.cdiv(listed, 2)
    row, source, target, column = places
    column = column - first
    tile = (row * blocks + source // SIDE) * blocks + target // SIDE
    inside = target % SIDE
    thread, bit = inside % 8 // 2, inside // 8 * 2 + inside % 2 + 16 * (column % 2)
    at = ((tile * pairs + column // 2) * SIDE + source % SIDE) * 4 + thread
    marks = torch.zeros((batch, blocks, blocks, pairs, SIDE, 4), dtype=torch.int32, device=places.device)
    marks.view(-1).index_add_(0, at, (1 << bit).to(torch.int32))
    occurs = torch.zeros((batch * blocks * blocks, listed), dtype=torch.int32, device=places.device)
    occurs[tile, column] = 1
    all_marks = (occurs << torch.arange(listed, device=places.device)).sum(-1).to(torch.int32)
    if weights is None:
        return Marked(marks, all_marks, marks, 2 * pairs, 0)
    return Marked(marks, all_marks, weights.half().contiguous(), 2 * pairs, weights.shape[1])


def pair_sums(asked: Asked, normaliser: Tensor, pairs: Marked, found: Tensor, first: int) -> None:
    """Write attention over the pairs of each sum to `found`, (batch, all heads, sum), the listed ones first."""
    heads, blocks, batch = asked.grid
    given = (
        *asked.given,
        found.shape[1],
        first,
        normaliser,
        pairs.marks,
        pairs.all_marks,
        pairs.weights,
        found,
        blocks,
    )
    compiled = {"LISTED": pairs.listed, "WEIGHED": pairs.weighed, "SUMS": found.shape[2], "RAISED": RAISED}
    # With three programs on a unit instead of two it is faster, though some registers have to be put aside.
    tuned = {"num_warps": 4, "num_stages": 2, "maxnreg": 168} if pairs.weighed else {"num_warps": 4}
    kernels.pair_sums[(heads, batch)](*given, **asked.constants, **asked.even, **compiled, **tuned)


class WordBlocks(NamedTuple):
    """A batch cut into blocks of whole words: (batch, block) or (batch, piece), int32.

    `start` and `pieces` are the first piece of a block and how many it has, `first_word` and `word_count` the same of
    words, at most `SIDE` of either, each with a piece; `word` is the word of a piece, -1 for none. `share` is (batch,
    word): what a piece counts in its word.
    """

    start: Tensor
    pieces: Tensor
    first_word: Tensor
    word_count: Tensor
    word: Tensor
    share: Tensor


def room_for_words(blocks: WordBlocks, heads: int) -> Tensor:
    """(2, batch, head, block, word): room for the strongest words in each block, for one layer after the other."""
    (batch, words), number = blocks.share.shape, blocks.start.shape[1]
    return torch.full((2, batch, heads, number, words), -1, dtype=torch.int32, device=blocks.share.device)


def strongest_words(
    asked: Asked, normaliser: Tensor, blocks: WordBlocks, best: Tensor, found: Tensor, first: int
) -> None:
    """Write what each word attends to most, and what attends most to it, to `found`; -1 for nothing.

    It is (batch, all heads, 2, word). `best` is what `room_for_words` made.
    """
    heads, _, batch = asked.grid
    words, number = blocks.share.shape[1], blocks.start.shape[1]
    given = (*asked.given, normaliser, *blocks, *best.unbind(0), words, number)
    kernels.strongest_words[(number * number, batch)](*given, **asked.constants, num_warps=4, num_stages=2)
    grid = (triton.cdiv(words, WORDS_AT_ONCE), heads, batch)
    given = (best, blocks.first_word, found, found.shape[1], first, words, number)
    kernels.first_of_strongest[grid](*given, M=SIDE, N=WORDS_AT_ONCE, num_warps=4)
