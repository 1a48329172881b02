"""Targets of the six word patterns as weights on attention: targets, same-distance controls, and the total."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.word_relations import WordPairs, WordRelations
from bertology.arrays import BoolArray, IntArray
from bertology.encoder.token_batch import RecordedInput, TokenBatch, move_to_device
from bertology.encoder.tokens import NO_WORD, SpecialToken
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite
from bertology.statistics.batch_features import SOURCE_GROUPS, TOKEN_KINDS
from bertology.statistics.pairs import (
    StatisticNeeds,
    TokenPairs,
    expand_groups,
    locate_pairs,
    matching_pairs,
    pair_sums,
)
from bertology.statistics.rows import row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

Float32Array = NDArray[np.float32]

NEXT_WORD, PREVIOUS_WORD, DELIMITERS = "next word", "previous word", "delimiters"
RELATED, RELATED_OTHER, PREDICTIVE = "related words", "related words (other sentence)", "predictive words"
PATTERNS = (NEXT_WORD, PREVIOUS_WORD, RELATED, RELATED_OTHER, PREDICTIVE, DELIMITERS)
CONTENT_PATTERNS = (RELATED, RELATED_OTHER, PREDICTIVE)
"""Patterns of content, whose baseline is a head that depends only on distance."""
WORD_PATTERNS = PATTERNS[:5]
LABELS = (
    *PATTERNS,
    *(f"{name}, same-distance tokens" for name in CONTENT_PATTERNS),
    *(f"{name}, attention to non-special tokens" for name in WORD_PATTERNS),
)


@cache
def pattern_site(relations: WordRelations = WordRelations(), include_self: bool = False) -> ReducedSite:
    """The site with each head's share of attention to the targets of each pattern, to its controls, and the total."""
    suffix = ".include_self" * include_self + (f".{relations.fingerprint}" if relations.fingerprint else "")
    return ReducedSite(
        f"attention.word_patterns{suffix}",
        ("pattern",),
        "share of each head's attention to the targets of six word patterns, and to same-distance tokens",
        _pattern_mass,
        LABELS,
        prepare=lambda batch: _prepare(batch, relations, include_self),
        needs=lambda prepared: StatisticNeeds(pairs=prepared.pairs),
        version=2,
    )


class _PatternIndex(NamedTuple):
    """Targets of a batch, the same in every layer.

    `pairs` are the targets of each pattern between words, and controls for those of `CONTENT_PATTERNS` that occur in
    the batch, at `content_indices`; `delimiter_weights` is (batch,): the weight of each source of that pattern,
    `row_weights` (batch, token, pattern) that of the others; `is_defined` (batch, label): labels with a value.
    """

    pairs: TokenPairs
    delimiter_weights: Tensor
    content_indices: Tensor
    row_weights: Tensor
    is_defined: Tensor


def _pattern_mass(layer: LayerActivations, batch: TokenBatch, prepared: _PatternIndex) -> Tensor:
    """(batch, head, label); NaN if a sentence has no token with such a target."""
    rows, sums = row_statistics(layer, batch), pair_sums(layer, prepared.pairs)
    controls = sums.new_zeros(*sums.shape[:2], len(CONTENT_PATTERNS))
    controls.index_copy_(-1, prepared.content_indices, sums[..., len(WORD_PATTERNS) :])
    non_special, special_kinds = SOURCE_GROUPS.index("non-special"), slice(TOKEN_KINDS.index("[SEP]") + 1)
    delimiter_mass = rows.mass_by_kind[:, :, non_special, special_kinds].sum(-1, keepdim=True)
    delimiters = delimiter_mass * prepared.delimiter_weights[:, None, None]
    non_special_mass = rows.non_special_mass @ prepared.row_weights.to(sums.dtype)
    values = torch.cat([sums[..., : len(WORD_PATTERNS)], delimiters, controls, non_special_mass], -1)
    return values.masked_fill(~prepared.is_defined[:, None], torch.nan)


def _prepare(batch: TokenBatch, relations: WordRelations, include_self: bool) -> _PatternIndex:
    pairs = _pattern_pairs(batch, relations, include_self)
    is_source = _is_source(batch, pairs)
    n_sources = is_source.sum(-1)
    has_source = n_sources > 0
    weight = 1 / np.maximum(n_sources, 1).astype(np.float32)
    first, last = PATTERNS.index(CONTENT_PATTERNS[0]), PATTERNS.index(CONTENT_PATTERNS[-1]) + 1
    content = np.flatnonzero(has_source[:, first:last].any(0))
    is_defined = np.concatenate([has_source, has_source[:, first:last], has_source[:, : len(WORD_PATTERNS)]], 1)
    row_weights = np.where(is_source, weight[..., None], np.float32(0))[:, : len(WORD_PATTERNS)].swapaxes(1, 2)
    indices, scale, delimiter_weights, content_indices, row_weights, is_defined = (
        move_to_device(np.ascontiguousarray(array), batch.device)
        for array in (
            pairs,
            weight[:, [*range(len(WORD_PATTERNS)), *(first + content)]],
            weight[:, PATTERNS.index(DELIMITERS)],
            content,
            row_weights,
            is_defined,
        )
    )
    controls = _distance_matched_controls(batch, pairs, indices, (first + content).tolist()) if len(content) else None
    token_pairs = TokenPairs(indices, scale, batch.padded_length, controls)
    return _PatternIndex(token_pairs, delimiter_weights, content_indices, row_weights, is_defined)


def _pattern_pairs(batch: TokenBatch, relations: WordRelations, include_self: bool) -> IntArray:
    """(4, pair): batch row, source, target and pattern of the targets of each pattern between words."""
    word_ids = batch.padded_array("word_ids", NO_WORD)
    words, segments = word_ids.ravel(), batch.padded_array("segment_ids", -1).ravel()
    same_word, related = matching_pairs(word_ids, word_ids), _related_pairs(batch, word_ids, relations)
    following = matching_pairs(np.where(word_ids >= 0, word_ids + 1, NO_WORD), word_ids)
    predictive = _token_pairs(batch, word_ids, relations.predictive_pairs)

    def in_segment(pairs: IntArray) -> BoolArray:
        return segments[pairs[0]] == segments[pairs[1]]

    following = following[:, in_segment(following)]
    is_near = in_segment(related)
    is_related = (words[related[0]] != words[related[1]]) | ((related[0] == related[1]) & include_self)
    is_predictive = in_segment(predictive) & (words[predictive[0]] != words[predictive[1]])
    other_tokens = same_word[:, same_word[0] != same_word[1]]
    pairs = {
        NEXT_WORD: following,
        PREVIOUS_WORD: following[::-1],
        RELATED: related[:, is_near & is_related],
        RELATED_OTHER: related[:, ~is_near],
        PREDICTIVE: np.concatenate([predictive[:, is_predictive], other_tokens], axis=1),
    }
    return locate_pairs([pairs[name] for name in WORD_PATTERNS], batch.padded_length)


def _is_source(batch: TokenBatch, pairs: IntArray) -> BoolArray:
    """(batch, pattern, token): tokens with any target."""
    row, source, _, pattern = pairs
    special_kinds = batch.padded_array("special_kinds", SpecialToken.NONE)
    is_delimiter = batch.is_token & ((special_kinds == SpecialToken.CLS) | (special_kinds == SpecialToken.SEP))
    is_source = np.zeros((len(special_kinds), len(PATTERNS), batch.padded_length), np.bool_)
    is_source[row, pattern, source] = True
    is_source[:, PATTERNS.index(DELIMITERS)] = (
        batch.is_token & (special_kinds == SpecialToken.NONE) & is_delimiter.any(1, keepdims=True)
    )
    return is_source


def _related_pairs(batch: TokenBatch, word_ids: IntArray, relations: WordRelations) -> IntArray:
    """The `matching_pairs` of tokens whose words have the same lemma or form, or similar vectors."""
    n_words = np.array([recorded_input.tokens.n_words for recorded_input in batch.inputs])
    by_word = np.append(relations.lemma_ids(batch.inputs), -1)
    word_index = word_ids + (np.cumsum(n_words) - n_words)[:, None]
    lemma_ids = by_word[np.where(word_ids >= 0, word_index, -1)]
    similar = _token_pairs(batch, word_ids, relations.similar_pairs)
    related = matching_pairs(lemma_ids, lemma_ids)
    return np.unique(np.concatenate([related, similar], axis=1), axis=1) if similar.size else related


def _token_pairs(batch: TokenBatch, word_ids: IntArray, word_pairs: Callable[[RecordedInput], WordPairs]) -> IntArray:
    """Pairs of words as pairs of their tokens, in the form of `matching_pairs`."""
    by_input = [word_pairs(recorded_input) for recorded_input in batch.inputs]
    n_pairs = list(map(len, by_input))
    if not any(n_pairs):
        return np.empty((2, 0), np.int64)
    rows, (first, second) = np.repeat(np.arange(len(n_pairs)), n_pairs), np.concatenate(by_input).T
    n_words = max(recorded_input.tokens.n_words for recorded_input in batch.inputs)
    rows, first, second = np.unique([rows, first, second], axis=1)
    tokens = np.flatnonzero(word_ids >= 0)
    words = (word_ids + n_words * np.arange(len(word_ids))[:, None]).ravel()[tokens]
    tokens = tokens[np.argsort(words, kind="stable")]
    sizes = np.bincount(words, minlength=len(word_ids) * n_words)
    starts = np.cumsum(sizes) - sizes
    first, second = first + rows * n_words, second + rows * n_words
    pairs, sources = expand_groups(starts[first], sizes[first])
    groups, targets = expand_groups(starts[second[pairs]], sizes[second[pairs]])
    return np.stack([tokens[sources[groups]], tokens[targets]])


def pattern_masks(
    recorded_input: RecordedInput, relations: WordRelations, include_self: bool = False
) -> dict[str, BoolArray]:
    """(from, to) targets of each pattern for each source of one input."""
    batch = TokenBatch([recorded_input])
    pairs = _pattern_pairs(batch, relations, include_self)
    masks = np.zeros((len(PATTERNS), batch.padded_length, batch.padded_length), np.bool_)
    _, source, target, pattern = pairs
    masks[pattern, source, target] = True
    kinds = recorded_input.tokens.special_kinds
    is_delimiter = (kinds == SpecialToken.CLS) | (kinds == SpecialToken.SEP)
    masks[PATTERNS.index(DELIMITERS)] = (kinds == SpecialToken.NONE)[:, None] & is_delimiter
    return dict(zip(PATTERNS, masks, strict=True))


def _distance_matched_controls(
    batch: TokenBatch, pairs: IntArray, indices: Tensor, content_patterns: list[int]
) -> Tensor:
    """(batch, pattern, from, to) weights of pairs of words at the offsets of the targets, each offset as often.

    Controls are pairs of words of the same segment, or of different ones, as the targets are, that are not targets.
    Without another pair at an offset the targets at this offset are their own controls, so that the head gains nothing.
    `indices` are the `pairs` on the device.
    """
    n_rows, size = batch.is_token.shape
    shape = n_rows, len(content_patterns), 2 * size - 1
    # Targets of one pattern are adjacent.
    starts, ends = (np.searchsorted(pairs[3], content_patterns, side) for side in ("left", "right"))
    n_targets = np.empty(shape, np.float32)
    is_target = torch.zeros((*shape[:2], size, size), dtype=torch.bool, device=batch.device)
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        row, source, target, _ = pairs[:, start:end]
        cells = row * shape[2] + target - source + size - 1
        n_targets[:, index] = np.bincount(cells, minlength=n_rows * shape[2]).reshape(n_rows, -1)
        row, source, target, _ = indices[:, start:end]
        is_target[row, index, source, target] = True
    names = [PATTERNS[pattern] for pattern in content_patterns]
    n_controls = _n_pairs_by_offset(batch, names) - n_targets
    by_offset = move_to_device(n_targets / np.maximum(n_controls, 1), batch.device)
    weights = _expand_offsets(by_offset).mul_(_control_pool(batch, names) & ~is_target)
    without_control = (n_targets > 0) & (n_controls == 0)
    if without_control.any():
        weights += _expand_offsets(move_to_device(without_control, batch.device)) * is_target
    return weights


def _control_pool(batch: TokenBatch, names: Sequence[str]) -> Tensor:
    """(batch, pattern or 1, from, to): pairs of words from which targets and controls of these patterns come.

    The pattern axis has length 1 if the pool is the same for all patterns.
    """
    in_word, segment_ids = batch.word_ids >= 0, batch.segment_ids
    pairs = in_word[:, :, None] & in_word[:, None]
    same_segment = pairs & (segment_ids[:, :, None] == segment_ids[:, None])
    if RELATED_OTHER not in names:
        return same_segment[:, None]
    return torch.stack([pairs & ~same_segment if name == RELATED_OTHER else same_segment for name in names], 1)


def _n_pairs_by_offset(batch: TokenBatch, names: Sequence[str]) -> Float32Array:
    """(batch, pattern or 1, offset): the number of pairs of the `_control_pool` at each offset from 1 - n to n - 1."""
    in_word = batch.padded_array("word_ids", NO_WORD) >= 0
    segment_ids = np.where(in_word, batch.padded_array("segment_ids", -1), NO_WORD)
    by_segment = [_autocorrelation(segment_ids == segment) for segment in np.unique(segment_ids[in_word])]
    same_segment: Float32Array = np.sum(by_segment, axis=0)
    if RELATED_OTHER not in names:
        return same_segment[:, None]
    other = _autocorrelation(in_word) - same_segment
    return np.stack([other if name == RELATED_OTHER else same_segment for name in names], 1)


def _autocorrelation(flags: BoolArray) -> Float32Array:
    """(batch, offset): the number of pairs of true flags at each offset from 1 - n to n - 1, exact as it is rounded."""
    size = flags.shape[1]
    spectrum = np.fft.rfft(flags, 2 * size)
    counts = np.fft.irfft(abs(spectrum) ** 2, 2 * size).round().astype(np.float32)
    return np.concatenate([counts[:, size + 1 :], counts[:, :size]], axis=1)


def _expand_offsets(by_offset: Tensor) -> Tensor:
    """(..., from, to): the value of each offset from 1 - n to n - 1 at all pairs with that offset."""
    return by_offset.unfold(-1, (by_offset.shape[-1] + 1) // 2, 1).flip(-2)
