"""Targets of the six word patterns as weights on attention: targets, same-distance controls, and the total."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertology.analyses.word_relations import WordPairs, WordRelations
from bertology.arrays import BoolArray
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite
from bertology.statistics.batch_features import SOURCE_GROUPS, TOKEN_KINDS
from bertology.statistics.pairs import StatisticNeeds, TokenPairs, pair_sums
from bertology.statistics.rows import row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

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
    masks = _pattern_masks(batch, relations, include_self)
    is_source = masks.any(-1)
    n_sources = is_source.sum(-1)
    weight = 1 / n_sources.clamp(min=1)
    row, pattern, source, target = torch.nonzero(masks[:, : len(WORD_PATTERNS)]).T
    first, last = PATTERNS.index(CONTENT_PATTERNS[0]), PATTERNS.index(CONTENT_PATTERNS[-1]) + 1
    content = [index for index in range(len(CONTENT_PATTERNS)) if bool(n_sources[:, first + index].any())]
    content_patterns = [first + index for index in content]
    controls = (
        _distance_matched_controls(masks[:, content_patterns], _control_pool(batch, content)) if content else None
    )
    has_source = n_sources > 0
    is_defined = torch.cat([has_source, has_source[:, first:last], has_source[:, : len(WORD_PATTERNS)]], 1)
    row_weights = (is_source * weight[..., None])[:, : len(WORD_PATTERNS)].transpose(1, 2).contiguous()
    scale = weight[:, [*range(len(WORD_PATTERNS)), *content_patterns]]
    pairs = TokenPairs(torch.stack([row, source, target, pattern]), scale, batch.padded_length, controls)
    content_indices = torch.tensor(content, dtype=torch.long, device=batch.device)
    return _PatternIndex(pairs, weight[:, PATTERNS.index(DELIMITERS)], content_indices, row_weights, is_defined)


def _word_pair_masks(batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """(batch, from, to): pairs of tokens in words, and those of them in the same segment."""
    in_word = batch.word_ids >= 0
    pairs = in_word[:, :, None] & in_word[:, None]
    return pairs, pairs & (batch.segment_ids[:, :, None] == batch.segment_ids[:, None])


def _pattern_masks(batch: TokenBatch, relations: WordRelations, include_self: bool) -> Tensor:
    """(batch, pattern, from, to) booleans: the targets of each pattern for each source."""
    pairs, same_segment = _word_pair_masks(batch)
    offset = batch.word_ids[:, None] - batch.word_ids[:, :, None]
    other_word = offset != 0
    itself = torch.eye(batch.padded_length, dtype=torch.bool, device=batch.device)
    related = _same_lemma(batch, relations) | _token_pair_mask(batch, relations.similar_pairs)
    predictive = _token_pair_mask(batch, relations.predictive_pairs)
    is_delimiter = (batch.special_kinds == SpecialToken.CLS) | (batch.special_kinds == SpecialToken.SEP)
    masks = {
        NEXT_WORD: same_segment & (offset == 1),
        PREVIOUS_WORD: same_segment & (offset == -1),
        RELATED: same_segment & related & ((other_word | itself) if include_self else other_word),
        RELATED_OTHER: pairs & ~same_segment & related,
        PREDICTIVE: same_segment & ((predictive & other_word) | (~other_word & ~itself)),
        DELIMITERS: batch.non_special_mask[:, :, None] & (batch.token_mask & is_delimiter)[:, None],
    }
    return torch.stack([masks[name] for name in PATTERNS], 1)


def _same_lemma(batch: TokenBatch, relations: WordRelations) -> Tensor:
    """(batch, from, to): tokens of words with the same lemma or form."""
    n_words = np.array([recorded_input.tokens.n_words for recorded_input in batch.inputs])
    by_word = np.append(relations.lemma_ids(batch.inputs), -1)
    word_ids = batch.padded_array("word_ids", -1)
    word_index = word_ids + (np.cumsum(n_words) - n_words)[:, None]
    ids = torch.from_numpy(by_word[np.where(word_ids >= 0, word_index, -1)]).to(batch.device)
    return (ids[:, :, None] == ids[:, None]) & (ids >= 0)[:, None]


def _token_pair_mask(batch: TokenBatch, word_pairs: Callable[[RecordedInput], WordPairs]) -> Tensor:
    """(batch, from, to) word pairs as pairs of their tokens; values of tokens outside words are arbitrary."""
    pairs = [word_pairs(recorded_input) for recorded_input in batch.inputs]
    shape = (len(pairs), batch.padded_length, batch.padded_length)
    if not any(map(len, pairs)):
        return torch.zeros(shape, dtype=torch.bool, device=batch.device)
    max_words = max(1, *(recorded_input.tokens.n_words for recorded_input in batch.inputs))
    is_pair = np.zeros((len(pairs), max_words, max_words), np.bool_)
    for row, (first, second) in enumerate(input_pairs.T for input_pairs in pairs):
        is_pair[row, first, second] = True
    table = torch.from_numpy(is_pair).to(batch.device)
    words = batch.word_ids.clamp(min=0)
    rows = table.gather(1, words[:, :, None].expand(-1, -1, max_words))
    return rows.gather(2, words[:, None].expand(-1, batch.padded_length, -1))


def pattern_masks(
    recorded_input: RecordedInput, relations: WordRelations, include_self: bool = False
) -> dict[str, BoolArray]:
    """(from, to) targets of each pattern for each source of one input."""
    (masks,) = _pattern_masks(TokenBatch([recorded_input]), relations, include_self)
    return dict(zip(PATTERNS, masks.numpy(), strict=True))


def _control_pool(batch: TokenBatch, content_indices: list[int]) -> Tensor:
    """(batch, pattern or 1, from, to): pairs from which targets and controls of the content patterns come.

    The pattern axis has length 1 if the pool is the same for all patterns.
    """
    pairs, same_segment = _word_pair_masks(batch)
    other_sentence = CONTENT_PATTERNS.index(RELATED_OTHER)
    if other_sentence not in content_indices:
        return same_segment[:, None]
    pools = [pairs & ~same_segment if index == other_sentence else same_segment for index in content_indices]
    return torch.stack(pools, 1)


def _distance_matched_controls(targets: Tensor, pool: Tensor) -> Tensor:
    """(batch, pattern, from, to) weights of pairs of the pool at the offsets of the targets, each offset as often.

    Controls are pairs of the pool that are not targets. Without another pair at an offset the targets at this offset
    are their own controls, so that the head gains nothing.
    """
    n_targets = _count_by_offset(targets)
    n_controls = _count_by_offset(pool) - n_targets
    weights = _expand_offsets(n_targets / n_controls.clamp(min=1)).mul_(pool & ~targets)
    without_control = (n_targets > 0) & (n_controls == 0)
    if bool(without_control.any()):
        weights += _expand_offsets(without_control) * targets
    return weights


def _expand_offsets(by_offset: Tensor) -> Tensor:
    """(..., from, to): the value of each offset from 1 - n to n - 1 at all pairs with that offset."""
    return by_offset.unfold(-1, (by_offset.shape[-1] + 1) // 2, 1).flip(-2)


def _count_by_offset(pairs: Tensor) -> Tensor:
    """(batch, pattern, offset) number of true pairs at each offset from 1 - n to n - 1."""
    n = pairs.shape[-1]
    # Each row is shifted by one more cell to the left, so that diagonals become columns.
    skewed = torch.nn.functional.pad(pairs.flip(-2), (0, n)).flatten(-2)[..., : n * (2 * n - 1)]
    # Sums of 255 rows fit into bytes, and adding bytes is fast.
    parts = skewed.unflatten(-1, (n, 2 * n - 1)).view(torch.uint8).split(255, -2)
    return torch.stack([part.sum(-2, dtype=torch.uint8).float() for part in parts]).sum(0)
