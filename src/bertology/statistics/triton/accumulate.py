"""Attention statistics without stored attention: Triton kernels compute them layer by layer for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bertology.encoder.attention_hook import LayerActivations
from bertology.lazy import torch
from bertology.statistics.token_tiles import TILE_SIZE, token_tiles

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch
    from bertology.statistics.pairs import StatisticNeeds, TokenPairs
    from bertology.statistics.triton.launch import AttentionInputs, PairBitmap, StatisticOutputs
    from bertology.statistics.words import WordSlots

_NON_SPECIAL, _ONE, _POSITION, _WORD = 4, 5, 6, 7
"""Indices of target features; see `KernelFeatures`."""


class FusedStatistics:
    """Row statistics, pair sums and strongest words; see `RowStatistics`, `pair_sums` and `strongest_words`.

    The head axis holds the heads of all layers. `rows`, `sums` and `words` are those of `StatisticOutputs`.
    """

    def __init__(
        self, rows: Tensor, sums: Tensor, pairs: list[tuple[TokenPairs, Tensor]], words: Tensor | None
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
        return self._sums[:, :, :3, :4]

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
        ) = self._sums[:, :, :9].unbind(2)
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
        assert self._words is not None and words.max_words == self._words.shape[-1]
        return self._words


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
        # Words are those of the batch, the same for all sites.
        self._words = next((need.words for need in needs if need.words is not None), None)
        self._outputs: StatisticOutputs | None = None
        self._first_layer = 0
        self._heads = 0
        self.n_pending = 0
        """Number of layers added since the last `finish`."""
        self.has_layers = False

    def prepare(self) -> None:
        """Compute the features and pairs of the batch in the layout of the kernels, before the first layer."""
        from bertology.statistics.triton import launch

        launch.kernel_features(self._batch)
        _ = self._bitmaps
        if self._words is not None:
            token_tiles(self._batch)

    @property
    def _bitmaps(self) -> Sequence[PairBitmap]:
        return () if self._all_pairs is None else self._all_pairs.bitmaps

    def add_layer(self, layer: LayerActivations, n_layers: int = 1) -> None:
        """Compute the statistics of one layer; the first call allocates memory for `n_layers` layers."""
        from bertology.statistics.triton import launch

        inputs = self._attention_inputs(layer)
        if self._outputs is None:
            self._heads, self._first_layer = inputs.query.shape[1], layer.layer
            self._outputs = self._allocate(inputs.query, n_layers)
        out, first_head = self._outputs, self._heads * self.n_pending
        features = launch.kernel_features(self._batch)
        launch.launch_row_statistics(inputs, features, out.rows, out.sums, first_head)
        for bitmap, sums in zip(self._bitmaps, out.pairs, strict=True):
            launch.launch_pair_sums(inputs, bitmap, sums, first_head)
        if out.words is not None:
            launch.launch_strongest_words(inputs, token_tiles(self._batch), out.words, first_head)
        self.n_pending += 1
        self.has_layers = True

    def _attention_inputs(self, layer: LayerActivations) -> AttentionInputs:
        from bertology.statistics.triton.launch import AttentionInputs

        query, key = layer.query, layer.key
        assert query is not None and key is not None
        mask = None if layer.hides_only_padding else layer.attention_mask  # kernels hide padding by themselves
        is_padded = bool(self._batch.model_inputs.known_padding)
        return AttentionInputs(query, key, mask, layer.scaling, self._lengths, is_padded, layer.log_normaliser)

    @cached_property
    def _lengths(self) -> Tensor:
        return self._batch.lengths.int()

    def _allocate(self, query: Tensor, n_layers: int) -> StatisticOutputs:
        from bertology.statistics.triton.launch import FEATURE_SIZE, StatisticOutputs

        n_rows, heads, size, _ = query.shape
        heads *= n_layers
        words = None
        if self._words is not None:
            shape = n_rows, heads, 2, self._words.max_words
            words = torch.full(shape, -1, dtype=self._words.index_dtype, device=query.device)
        return StatisticOutputs(
            torch.zeros((8, n_rows, heads, size), device=query.device),  # padding is not written
            torch.empty((n_rows, heads, FEATURE_SIZE, FEATURE_SIZE), device=query.device),
            [
                torch.empty((n_rows, heads, bitmap.n_listed + bitmap.n_weighted), device=query.device)
                for bitmap in self._bitmaps
            ],
            words,
        )

    def finish(self) -> FusedLayers:
        """The pending layers as one, numbered as the first of them."""
        out = self._outputs
        assert out is not None
        heads = self._heads * self.n_pending
        sums: list[Tensor] = []
        if self._all_pairs is not None:
            sums = _split_sums(_join_sums(self._all_pairs, self._bitmaps, out.pairs)[:, :heads], self._pairs)
        statistics = FusedStatistics(
            out.rows[:, :, :heads],
            out.sums[:, :heads],
            list(zip(self._pairs, sums, strict=True)),
            None if out.words is None else out.words[:, :heads],
        )
        self._outputs, self.n_pending = None, 0
        return FusedLayers(self._first_layer, None, statistics=statistics)


def _join_sums(pairs: TokenPairs, bitmaps: Sequence[PairBitmap], sums_by_bitmap: Sequence[Tensor]) -> Tensor:
    """(batch, head, sum): the listed sums of all bitmaps, then the weighted sums."""
    by_kind = [
        sums.split([bitmap.n_listed, bitmap.n_weighted], -1)
        for sums, bitmap in zip(sums_by_bitmap, bitmaps, strict=True)
    ]
    listed, weighted = (torch.cat(sums, -1) for sums in zip(*by_kind, strict=True))
    return torch.cat([listed[..., : pairs.n_listed], weighted], -1)


def _split_sums(sums: Tensor, pair_sets: Sequence[TokenPairs]) -> list[Tensor]:
    """The sums of each of several concatenated pair sets: (batch, head, sum)."""
    n_listed = [pairs.n_listed for pairs in pair_sets]
    n_weighted = [pairs.scale.shape[1] - pairs.n_listed for pairs in pair_sets]
    parts = sums.split([*n_listed, *n_weighted], -1)
    return [torch.cat([parts[index], parts[index + len(pair_sets)]], -1) for index in range(len(pair_sets))]


def supports_fused(layer: LayerActivations) -> bool:
    """Whether the kernels can compute the statistics of a layer from its queries and keys."""
    if layer.query is None or layer.key is None or not _has_triton():
        return False
    from bertology.statistics.triton.launch import kernels_support

    return kernels_support(layer.query, layer.key, layer.attention_mask)


def can_fuse(needs: StatisticNeeds) -> bool:
    """Whether the kernels can compute these statistics: words must not have too many tokens."""
    return needs.words is None or needs.words.max_word_tokens <= TILE_SIZE


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
