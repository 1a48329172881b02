"""Attention statistics without stored attention: Triton kernels compute them layer by layer for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from bertology.encoder.attention_hook import LayerActivations
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch
    from bertology.statistics.pairs import StatisticNeeds, TokenPairs
    from bertology.statistics.triton.launch import AttentionInputs
    from bertology.statistics.words import WordSlots

_NON_SPECIAL, _ONE, _POSITION, _WORD = 4, 5, 6, 7
"""Indices of target features; see `KernelFeatures`."""


class FusedStatistics:
    """Row statistics, pair sums and strongest words; see `RowStatistics`, `pair_sums` and `strongest_words`.

    The head axis holds the heads of all layers. `rows` is (8, batch, head, from) and `sums` (batch, head, source sum,
    2, feature), as written by the kernels.
    """

    def __init__(
        self, rows: Tensor, sums: Tensor, pairs: list[tuple[TokenPairs, Tensor]], words: list[tuple[WordSlots, Tensor]]
    ) -> None:
        self.max_weight, self.max_non_special_weight, self.entropy, self.non_special_entropy, self.non_special_mass = (
            rows[:5].unbind(0)
        )
        self.neighbour_weights = rows[5], rows[6], rows[7]
        self._sums, self._pairs, self._words = sums, pairs, words

    @cached_property
    def mass(self) -> Tensor:
        """(batch, head, from): attention to all tokens, which is 1."""
        return torch.ones_like(self.max_weight)

    @cached_property
    def mass_by_kind(self) -> Tensor:
        """(batch, head, source group, kind): attention from `SOURCE_GROUPS` to `TOKEN_KINDS`."""
        return self._sums[:, :, :3, :, :4].sum(3)

    @cached_property
    def distance_sums(self) -> Tensor:
        """(batch, head, 4): attention times distance; see `RowStatistics`."""
        # The sum of a |j - i| is the sum of a j minus the sum of a i for targets after i, the reverse for those before.
        (
            by_all,
            by_non_special,
            _,
            by_position,
            by_non_special_position,
            by_fraction,
            by_non_special_fraction,
            by_word,
            by_non_special_word,
        ) = (self._sums[..., 1, :] - self._sums[..., 0, :])[:, :, :9].unbind(2)
        sums = [
            by_all[..., _POSITION] - by_position[..., _ONE],
            by_non_special[..., _POSITION + 2] - by_non_special_position[..., _NON_SPECIAL],
            by_fraction[..., _WORD] - by_word[..., _ONE],
            by_non_special_fraction[..., _WORD + 2] - by_non_special_word[..., _NON_SPECIAL],
        ]
        return torch.stack(sums, -1)

    def pair_sums(self, pairs: TokenPairs) -> Tensor:
        """(batch, head, sum): attention summed over pairs that were declared as `needs` before the pass."""
        return next(sums for declared, sums in self._pairs if declared is pairs)

    def strongest_words(self, words: WordSlots) -> Tensor:
        """(batch, head, 2, word): the word each word attends to most, and the word that attends to it most."""
        return next(indices for declared, indices in self._words if declared is words)


@dataclass(eq=False)
class FusedLayers(LayerActivations):
    """Several layers, their heads concatenated along the head axis, with statistics in place of attention."""

    statistics: FusedStatistics = field(kw_only=True)


class FusedAccumulator:
    """Computes the statistics of one layer after the other, while its queries and keys exist."""

    def __init__(self, batch: TokenBatch, needs: Sequence[StatisticNeeds]) -> None:
        self._batch = batch
        self._pairs = [need.pairs for need in needs if need.pairs is not None]
        self._all_pairs = self._pairs[0].concatenate(self._pairs[1:]) if self._pairs else None
        self._words = [need.words for need in needs if need.words is not None]
        self._mask: Tensor | None = None
        self._masks_only_padding = False
        self._outputs: _KernelOutputs | None = None
        self._first_layer = 0
        self.n_pending = 0
        """Number of layers added since the last `finish`."""
        self.has_layers = False

    def prepare(self) -> None:
        """Compute the features and pairs of the batch in the layout of the kernels, before the first layer."""
        from bertology.statistics.triton import launch

        launch.kernel_features(self._batch)
        _ = self._all_pairs and self._all_pairs.bitmaps

    def add_layer(self, layer: LayerActivations, n_layers: int = 1) -> None:
        """Compute the statistics of one layer; the first call allocates memory for `n_layers` layers."""
        from bertology.statistics.triton import launch

        inputs, features = self._attention_inputs(layer), launch.kernel_features(self._batch)
        if self._outputs is None:
            self._outputs = _allocate_outputs(self._all_pairs, self._words, inputs.query, n_layers)
            self._first_layer = layer.layer
        out, first_head = self._outputs, inputs.query.shape[1] * self.n_pending
        launch.launch_row_sums(inputs, features, out.log_normaliser, out.rows, out.sums, first_head)
        for bitmap, sums in zip(self._all_pairs.bitmaps if self._all_pairs else (), out.pairs, strict=True):
            launch.launch_pair_sums(inputs, out.log_normaliser, bitmap, sums, first_head)
        for words, (indices, buffer) in zip(self._words, out.words, strict=True):
            assert words.tiles is not None
            launch.launch_strongest_words(inputs, out.log_normaliser, words.tiles, buffer, indices, first_head)
        self.n_pending += 1
        self.has_layers = True

    def _attention_inputs(self, layer: LayerActivations) -> AttentionInputs:
        from bertology.statistics.triton.launch import AttentionInputs, kernel_features

        query, key, mask, features = layer.query, layer.key, layer.attention_mask, kernel_features(self._batch)
        assert query is not None and key is not None
        if mask is None:
            return AttentionInputs(query, key, None, layer.scaling, features.padded_lengths, True)
        if mask is not self._mask:  # most models have one mask for all layers
            self._mask, self._masks_only_padding = mask, _masks_only_padding(mask, self._batch)
        if self._masks_only_padding:
            return AttentionInputs(query, key, None, layer.scaling, features.lengths, False)
        return AttentionInputs(query, key, mask, layer.scaling, features.padded_lengths, True)

    def finish(self) -> FusedLayers:
        """The pending layers as one, numbered as the first of them."""
        out = self._outputs
        assert out is not None
        heads = out.log_normaliser.shape[1] * self.n_pending
        sums = _split_sums(_join_sums(self._all_pairs, out.pairs)[:, :heads], self._pairs) if self._all_pairs else []
        statistics = FusedStatistics(
            out.rows[:, :, :heads],
            out.sums[:, :heads],
            list(zip(self._pairs, sums, strict=True)),
            [(words, indices[:, :heads]) for words, (indices, _) in zip(self._words, out.words, strict=True)],
        )
        self._outputs, self.n_pending = None, 0
        return FusedLayers(self._first_layer, None, statistics=statistics)


class _KernelOutputs(NamedTuple):
    """Tensors that kernels write to, the heads of all layers along one axis; `log_normaliser` is of one layer.

    `pairs` are (batch, head, sum), one tensor per bitmap; `words` are pairs of indices and a buffer for one layer. See
    `FusedStatistics` for the others.
    """

    log_normaliser: Tensor
    rows: Tensor
    sums: Tensor
    pairs: list[Tensor]
    words: list[tuple[Tensor, Tensor]]


def _allocate_outputs(
    pairs: TokenPairs | None, words: Sequence[WordSlots], query: Tensor, n_layers: int
) -> _KernelOutputs:
    from bertology.statistics.triton.launch import N_FEATURES, N_SOURCE_SUMS

    n_rows, heads, size, _ = query.shape

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, device=query.device)

    return _KernelOutputs(
        empty(n_rows, heads, size),
        empty(8, n_rows, n_layers * heads, size),
        empty(n_rows, n_layers * heads, N_SOURCE_SUMS, 2, N_FEATURES),
        [
            empty(n_rows, n_layers * heads, bitmap.n_listed + bitmap.n_weighted)
            for bitmap in (pairs.bitmaps if pairs else ())
        ],
        [_allocate_word_outputs(slots, query, n_layers) for slots in words],
    )


def _allocate_word_outputs(words: WordSlots, query: Tensor, n_layers: int) -> tuple[Tensor, Tensor]:
    from bertology.statistics.triton.launch import word_buffer

    assert words.tiles is not None
    shape = len(query), n_layers * query.shape[1], 2, words.max_words
    indices = torch.empty(shape, dtype=words.index_dtype, device=query.device)
    return indices, word_buffer(words.tiles, query.shape[1])


def _join_sums(pairs: TokenPairs, sums_by_bitmap: Sequence[Tensor]) -> Tensor:
    """(batch, head, sum): the listed sums of all bitmaps, then the weighted sums."""
    by_kind = [
        sums.split([bitmap.n_listed, bitmap.n_weighted], -1)
        for sums, bitmap in zip(sums_by_bitmap, pairs.bitmaps, strict=True)
    ]
    listed, weighted = (torch.cat(sums, -1) for sums in zip(*by_kind, strict=True))
    return torch.cat([listed[..., : pairs.n_listed], weighted], -1)


def _split_sums(sums: Tensor, pair_sets: Sequence[TokenPairs]) -> list[Tensor]:
    """The sums of each of several concatenated pair sets: (batch, head, sum)."""
    n_listed = [pairs.n_listed for pairs in pair_sets]
    n_weighted = [pairs.scale.shape[1] - pairs.n_listed for pairs in pair_sets]
    parts = sums.split([*n_listed, *n_weighted], -1)
    return [torch.cat([parts[index], parts[index + len(pair_sets)]], -1) for index in range(len(pair_sets))]


def _masks_only_padding(mask: Tensor, batch: TokenBatch) -> bool:
    """Whether the mask hides padding and nothing else."""
    return bool(torch.where(batch.token_mask[:, None, None], mask == 0, mask < -1e4).all())


def supports_fused(layer: LayerActivations) -> bool:
    """Whether the kernels can compute the statistics of a layer from its queries and keys."""
    if layer.query is None or layer.key is None or not _has_triton():
        return False
    from bertology.statistics.triton.launch import kernels_support

    return kernels_support(layer.query, layer.key, layer.attention_mask)


def can_fuse(needs: StatisticNeeds) -> bool:
    """Whether the kernels can compute these statistics: words must not have too many tokens."""
    return needs.words is None or needs.words.tiles is not None


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
