"""Statistics of the rows of one layer's attention, computed lazily and shared by all sites of a pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast
from weakref import WeakKeyDictionary

import numpy as np

from bertology.lazy import torch
from bertology.statistics.batch_features import token_kinds, token_runs
from bertology.statistics.pairs import weighted_sums
from bertology.statistics.triton.accumulate import FusedLayers

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

LN_2 = math.log(2)
CHUNK_CELLS = 2**19
"""Attention weights processed at once on a CPU: they and the intermediate results fit into its cache."""


class RowStatistics(Protocol):
    """Sums and maxima over the targets of each source token, (batch, head, from), over all or non-special targets."""

    max_weight: Tensor
    max_non_special_weight: Tensor
    """The highest weight of a non-special token; 0 if there is none."""
    entropy: Tensor
    """The sum of -a ln a over all targets, where a is the attention weight."""
    non_special_entropy: Tensor
    mass: Tensor
    """Attention to all tokens: 1, up to the rounding of attention that was not computed here."""
    non_special_mass: Tensor
    """Attention to non-special tokens."""
    neighbour_weights: tuple[Tensor, Tensor, Tensor]
    """Attention to the token itself, the previous and the next token; 0 if there is none."""
    mass_by_kind: Tensor
    """(batch, head, source group, kind): attention from `SOURCE_GROUPS` to `TOKEN_KINDS`, summed over sources."""
    distance_sums: Tensor
    """(batch, head, 4): attention times distance, summed over pairs; the four distances of `TokenBatch`."""


_statistics: WeakKeyDictionary[LayerActivations, RowStatistics] = WeakKeyDictionary()


def row_statistics(layer: LayerActivations, batch: TokenBatch) -> RowStatistics:
    """The row statistics of a layer; sites that read the same layer share them."""
    if isinstance(layer, FusedLayers):
        return cast("RowStatistics", layer.statistics)
    if layer not in _statistics:
        _statistics[layer] = cast("RowStatistics", _DenseRowStatistics(layer.attention, batch))
    return _statistics[layer]


class _DenseRowStatistics:
    """Row statistics of attention that is in memory."""

    def __init__(self, attention: Tensor, batch: TokenBatch) -> None:
        self._attention = attention
        self._batch = batch

    @cached_property
    def mass(self) -> Tensor:
        return self._attention.sum(-1)

    @cached_property
    def non_special_mass(self) -> Tensor:
        return non_special_mass(self._attention, self._batch)

    @cached_property
    def neighbour_weights(self) -> tuple[Tensor, Tensor, Tensor]:
        itself, following, previous = (self._attention.diagonal(offset, -2, -1) for offset in (0, 1, -1))
        pad = torch.nn.functional.pad
        return itself, pad(previous, (1, 0)), pad(following, (0, 1))

    @cached_property
    def mass_by_kind(self) -> Tensor:
        attention = self._attention
        kinds = token_kinds(self._batch).to(attention.dtype)
        from_all = attention_received(attention, self._batch) @ kinds
        # Special tokens are few: their rows are summed one by one and subtracted from the sum over all rows.
        row, position = self._batch.special_positions
        by_source = attention[row, :, position] @ kinds[row]
        from_special, from_separators = (
            torch.zeros_like(from_all).index_add_(0, row, mass)
            for mass in (by_source, by_source * kinds[row, position, 1, None, None])
        )
        return torch.stack([from_all, from_all - from_special, from_separators], 2)

    @cached_property
    def distance_sums(self) -> Tensor:
        return weighted_sums(self._attention, self._batch.distances)

    @property
    def max_weight(self) -> Tensor:
        return self._reductions.max_weight

    @property
    def max_non_special_weight(self) -> Tensor:
        return self._reductions.max_non_special_weight

    @property
    def entropy(self) -> Tensor:
        return self._reductions.entropy

    @property
    def non_special_entropy(self) -> Tensor:
        return self._reductions.non_special_entropy

    @cached_property
    def _reductions(self) -> _RowReductions:
        return _reduce_rows(self._attention.detach(), self._batch)


class _RowReductions(NamedTuple):
    """The statistics that read whole rows, (batch, head, from); see `RowStatistics`."""

    max_weight: Tensor
    max_non_special_weight: Tensor
    entropy: Tensor
    non_special_entropy: Tensor


def _reduce_rows(attention: Tensor, batch: TokenBatch) -> _RowReductions:
    """Reduce rows a few heads at a time, so that intermediate results stay in a CPU's cache."""
    n_rows, heads, size, _ = attention.shape
    out = _RowReductions(*attention.new_empty(len(_RowReductions._fields), n_rows, heads, size).unbind(0))
    chunk_heads = max(1, min(heads, CHUNK_CELLS // max(1, n_rows * size * size)))
    buffer = attention.new_empty(n_rows, chunk_heads, size, size)
    for start in range(0, heads, chunk_heads):
        chunk = slice(start, min(heads, start + chunk_heads))
        chunk_out = _RowReductions(*(values[:, chunk] for values in out))
        _reduce_chunk(attention[:, chunk], batch, buffer[:, : chunk.stop - start], chunk_out)
    return out


def _reduce_chunk(attention: Tensor, batch: TokenBatch, buffer: Tensor, out: _RowReductions) -> None:
    """Reduce the rows of some heads.

    Special tokens are overwritten in the buffer and added afterwards: slicing every row would take up to ten times as
    long.
    """
    tiny = torch.finfo(attention.dtype).tiny
    torch.clamp(attention, min=tiny, out=buffer)
    special = [columns for _, columns in special_columns(buffer, batch)]
    for columns in special:
        columns.zero_()
    out.max_non_special_weight.copy_(torch.threshold(buffer.amax(-1), tiny, 0.0))
    out.max_weight.copy_(out.max_non_special_weight)
    for columns in special:
        columns.fill_(1.0)  # the logarithm is 0
    out.non_special_entropy.copy_(log2_inplace(buffer).mul_(attention).sum(-1).mul_(-LN_2))
    out.entropy.copy_(out.non_special_entropy)
    for rows, columns in special_columns(attention, batch):
        torch.maximum(out.max_weight[rows], columns.amax(-1), out=out.max_weight[rows])
        out.entropy[rows] += torch.special.entr(columns).sum(-1)


def log2_inplace(values: Tensor) -> Tensor:
    """Replace positive numbers by their base-2 logarithms.

    On a CPU this calls NumPy: measured, it takes a quarter of the time of torch's log2, and two thirds of the time of a
    natural logarithm.
    """
    if values.device.type == "cpu":
        array = values.detach().numpy()
        np.log2(array, out=array)
        return values
    return values.log2_()


def special_columns(attention: Tensor, batch: TokenBatch) -> Iterator[tuple[slice, Tensor]]:
    """Batch rows, and views of their attention to adjacent special tokens."""
    for run in token_runs(batch):
        for positions in run.special:
            yield run.batch_rows, attention[run.batch_rows, ..., positions]


def non_special_mass(attention: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, head, from): attention of each token to non-special tokens."""
    sums: list[Tensor] = []
    for run in token_runs(batch):
        parts = [attention[run.batch_rows, ..., positions].sum(-1) for positions in run.non_special]
        zeros = attention.new_zeros(run.batch_rows.stop - run.batch_rows.start, *attention.shape[1:3])
        sums.append(reduce(torch.add, parts) if parts else zeros)
    return torch.cat(sums)


def attention_received(attention: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, head, to): attention each token receives from all tokens."""
    return torch.cat([attention[run.batch_rows, :, : run.length].sum(-2) for run in token_runs(batch)])


def attention_received_from_non_special(attention: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, head, to): attention each token receives from non-special tokens."""
    return non_special_mass(attention.transpose(-1, -2), batch)
