"""Sums of attention over chosen pairs of tokens, and what a reduced site needs of a layer's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertology.lazy import torch
from bertology.statistics.triton.accumulate import FusedLayers

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.arrays import IntArray
    from bertology.encoder.attention_hook import LayerActivations
    from bertology.statistics.triton.launch import PairBitmap
    from bertology.statistics.words import WordSlots


class StatisticNeeds(NamedTuple):
    """Statistics a reduced site needs besides row statistics; declared so that no attention has to be stored."""

    pairs: TokenPairs | None = None
    words: WordSlots | None = None


def rows_only(prepared: Any) -> StatisticNeeds:
    """The needs of a site that reads row statistics alone."""
    return StatisticNeeds()


@dataclass(frozen=True)
class TokenPairs:
    """Pairs of tokens of a batch, each part of one of several sums.

    `indices` is (4, pair): batch row, source, target, sum; no pair occurs twice in a sum. `weights`, (batch, sum, from,
    to), are further sums over all pairs, which follow the listed ones. `scale`, (batch, sum), multiplies both. Padding
    is in no pair and has weight 0.
    """

    indices: Tensor
    scale: Tensor
    padded_length: int
    weights: Tensor | None = None

    @cached_property
    def n_listed(self) -> int:
        """Number of sums over listed pairs."""
        return self.scale.shape[1] - (0 if self.weights is None else self.weights.shape[1])

    def concatenate(self, others: Sequence[TokenPairs]) -> TokenPairs:
        """All pair sets as one, unscaled: the listed sums of all, then the weighted sums of all. Cached."""
        key = tuple(map(id, others))
        if key not in self._concatenations:
            self._concatenations[key] = tuple(others), _concatenate([self, *others])
        return self._concatenations[key][1]

    @cached_property
    def _concatenations(self) -> dict[tuple[int, ...], tuple[tuple[TokenPairs, ...], TokenPairs]]:
        """Results of `concatenate` by the ids of the other sets, which are stored so that ids stay unique."""
        return {}

    @cached_property
    def bitmaps(self) -> Sequence[PairBitmap]:
        """The pairs in the layout of the Triton kernels."""
        from bertology.statistics.triton.launch import pair_bitmaps

        return pair_bitmaps(self.indices, self.n_listed, (len(self.scale), self.padded_length), self.weights)

    @cached_property
    def cell_indices(self) -> tuple[Tensor, Tensor]:
        """(batch, cell) listed cells of each attention pattern, and (batch, cell, sum) 1 for the sums a cell is in."""
        row, source, target, sum_index = self.indices
        n_rows = len(self.scale)
        cells, cell_of_pair = ((row * self.padded_length + source) * self.padded_length + target).unique(
            return_inverse=True
        )
        row_of_cell = cells // self.padded_length**2
        counts = row_of_cell.bincount(minlength=n_rows)
        slot = torch.arange(len(cells), device=cells.device) - (counts.cumsum(0) - counts)[row_of_cell]
        max_cells = int(counts.max())
        listed = cells.new_zeros(n_rows, max_cells)
        listed[row_of_cell, slot] = cells % self.padded_length**2
        membership = self.scale.new_zeros(n_rows, max_cells, self.n_listed)
        membership[row, slot[cell_of_pair], sum_index] = 1
        return listed, membership


def matching_pairs(source_keys: IntArray, target_keys: IntArray) -> IntArray:
    """(2, pair): sources and targets of all pairs of tokens in a row with equal keys, both (batch, token).

    Tokens are counted over all rows, padding included; those with a negative key are in no pair.
    """
    n_keys = int(max(source_keys.max(initial=0), target_keys.max(initial=0))) + 1
    first_keys = n_keys * np.arange(len(source_keys))[:, None]
    sources, targets = np.flatnonzero(source_keys >= 0), np.flatnonzero(target_keys >= 0)
    keys_of_sources, keys_of_targets = (
        (keys + first_keys).ravel()[tokens] for keys, tokens in ((source_keys, sources), (target_keys, targets))
    )
    targets = targets[np.argsort(keys_of_targets, kind="stable")]
    counts = np.bincount(keys_of_targets, minlength=len(source_keys) * n_keys)
    groups, positions = expand_groups((np.cumsum(counts) - counts)[keys_of_sources], counts[keys_of_sources])
    return np.stack([sources[groups], targets[positions]])


def locate_pairs(pairs_by_sum: Sequence[IntArray], size: int) -> IntArray:
    """(4, pair): the `indices` of `TokenPairs`, from the `matching_pairs` of each sum in rows of this size."""
    located = np.empty((4, sum(pairs.shape[1] for pairs in pairs_by_sum)), np.int64)
    sources, targets = np.concatenate(pairs_by_sum, axis=1)
    np.floor_divide(sources, size, out=located[0])
    np.subtract(sources, located[0] * size, out=located[1])
    np.subtract(targets, located[0] * size, out=located[2])
    located[3] = np.repeat(np.arange(len(pairs_by_sum)), [pairs.shape[1] for pairs in pairs_by_sum])
    return located


def expand_groups(starts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The members of groups of adjacent positions: (member,) the number of the group, and the position."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    positions = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    positions += np.arange(len(groups))
    return groups, positions


def _concatenate(pair_sets: Sequence[TokenPairs]) -> TokenPairs:
    first_sums = accumulate((pairs.n_listed for pairs in pair_sets[:-1]), initial=0)
    shifted = (
        torch.cat([pairs.indices[:3], pairs.indices[3:] + first])
        for pairs, first in zip(pair_sets, first_sums, strict=True)
    )
    indices = torch.cat(list(shifted), 1)
    weights = [pairs.weights for pairs in pair_sets if pairs.weights is not None]
    n_sums = sum(pairs.scale.shape[1] for pairs in pair_sets)
    scale = pair_sets[0].scale.new_ones(len(pair_sets[0].scale), n_sums)
    # Weights are as large as attention patterns: those of a single site are not copied.
    joined = torch.cat(weights, 1) if len(weights) > 1 else next(iter(weights), None)
    return TokenPairs(indices, scale, pair_sets[0].padded_length, joined)


def pair_sums(layer: LayerActivations, pairs: TokenPairs) -> Tensor:
    """(batch, head, sum): attention summed over the pairs of each sum."""
    if isinstance(layer, FusedLayers):
        return layer.statistics.pair_sums(pairs) * pairs.scale[:, None]
    attention = layer.attention
    sums = _listed_sums(attention, pairs)
    if pairs.weights is not None:
        sums = torch.cat([sums, weighted_sums(attention, pairs.weights)], -1)
    return sums * pairs.scale.to(attention.dtype)[:, None]


def weighted_sums(attention: Tensor, weights: Tensor) -> Tensor:
    """(batch, head, sum): attention times each of the (batch, sum, from, to) weights, summed over all pairs."""
    # Both factors are flattened along the pattern: the layout in which a product of a few long rows is fastest.
    return attention.flatten(2) @ weights.flatten(2).to(attention.dtype).transpose(1, 2)


def _listed_sums(attention: Tensor, pairs: TokenPairs) -> Tensor:
    cells, membership = pairs.cell_indices
    weights = attention.flatten(2).gather(-1, cells[:, None].expand(-1, attention.shape[1], -1))
    return weights @ membership.to(attention.dtype)
