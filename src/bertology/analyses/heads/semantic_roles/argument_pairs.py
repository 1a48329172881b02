"""Token pairs of predicates and arguments, and the strongest attention between them (Kovaleva et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.corpus.sentence import SemanticFrame, Sentence, Span
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

ArgumentFilter = Literal["distant", "paper", "all"]
TokenPair = tuple[int, int]

DIRECTIONS: tuple[str, ...] = ("attention from role to predicate", "attention from predicate to role")
SAME_DISTANCE = "same-distance pairs"
LABELS = (*DIRECTIONS, *(f"{direction}, {SAME_DISTANCE}" for direction in DIRECTIONS))
MAX_NEAR_DISTANCE = 2
MAX_SENTENCE_WORDS, MAX_ROLE_WORDS = 12, 3
SHIFTS = (-4, -3, -2, -1, 1, 2, 3, 4)
"""Offsets by which the pairs are moved along the sentence for the baseline of same-distance pairs."""


def is_core(role: str) -> bool:
    """Whether a role is one of the numbered ones, which each sense of a predicate defines."""
    name = role.removeprefix("R-").removeprefix("C-")
    return name.removeprefix("ARG").removeprefix("A")[:1].isdigit()


def is_distant(argument: Span, predicate: int) -> bool:
    """Whether no word of the argument is the predicate or within two words of it."""
    return all(abs(word - predicate) > MAX_NEAR_DISTANCE for word in range(argument.start, argument.end))


def selected_arguments(
    sentence: Sentence, role_filter: ArgumentFilter
) -> Iterator[tuple[SemanticFrame, tuple[Span, ...]]]:
    """The semantic frames of a sentence with the arguments that pass the filter; frames without any are skipped.

    `distant`: arguments more than two words from their predicate. `paper`: arguments of sentences of at most twelve
    words with one predicate, if every argument is distant and has at most three words and at least one is core.
    """
    frames = sentence.frames or ()
    if role_filter == "paper" and not (
        len(sentence) <= MAX_SENTENCE_WORDS and len(frames) == 1 and _fits_paper_filter(frames[0])
    ):
        return
    for frame in frames:
        arguments = tuple(a for a in frame.arguments if role_filter != "distant" or is_distant(a, frame.predicate))
        if arguments:
            yield frame, arguments


def _fits_paper_filter(frame: SemanticFrame) -> bool:
    short = all(a.end - a.start <= MAX_ROLE_WORDS and is_distant(a, frame.predicate) for a in frame.arguments)
    return short and any(is_core(argument.label) for argument in frame.arguments)


def argument_token_pairs(
    recorded_input: RecordedInput, role_filter: ArgumentFilter, legacy: bool
) -> Iterator[list[TokenPair]]:
    """For each semantic frame the pairs of a token of an argument and a token of the predicate.

    `legacy` pairs the first token with the first, the second with the second and so on, as the released code does.
    """
    tokens = recorded_input.tokens.positions_by_word()
    start = 0
    for segment in recorded_input.text.segments:
        for frame, arguments in selected_arguments(segment, role_filter):
            words = [start + word for argument in arguments for word in range(argument.start, argument.end)]
            sources = [token for word in words for token in tokens.get(word, ())]
            targets = tokens.get(start + frame.predicate, [])
            product = zip(sources, targets, strict=False) if legacy else ((i, j) for i in sources for j in targets)
            pairs = [(i, j) for i, j in product if i != j]
            if pairs:
                yield pairs
        start += len(segment)


class _ArgumentIndex(NamedTuple):
    """All token pairs of a batch, by group.

    A group is a semantic frame in place (kind 0) or shifted along the sentence (kind 1). `group_ids` is the group of
    each pair; `group_rows`, `group_kinds` and `group_weights` are the batch row of each group, its kind, and its weight
    in the mean of the row. `is_defined` is (batch, kind).
    """

    batch_rows: Tensor
    source_positions: Tensor
    target_positions: Tensor
    group_ids: Tensor
    group_rows: Tensor
    group_kinds: Tensor
    group_weights: Tensor
    is_defined: Tensor


@cache
def role_attention_site(role_filter: ArgumentFilter = "distant", legacy: bool = False) -> ReducedSite:
    """The site with the highest weight between tokens of a predicate and of its roles, averaged over frames."""
    return ReducedSite(
        f"attention.roles.{role_filter}" + (".legacy" if legacy else ""),
        ("measure",),
        "highest attention weight between tokens of a predicate and of its roles, and between same-distance tokens",
        _strongest_links,
        LABELS,
        prepare=lambda batch: _prepare(batch, role_filter, legacy),
    )


def _prepare(batch: TokenBatch, role_filter: ArgumentFilter, legacy: bool) -> _ArgumentIndex:
    pairs: list[tuple[int, int, int, int]] = []
    groups: list[tuple[int, int, float]] = []
    is_defined = np.zeros((len(batch.inputs), 2), np.bool_)
    for row, recorded_input in enumerate(batch.inputs):
        frames = list(argument_token_pairs(recorded_input, role_filter, legacy))
        shifted_frames = [list(_shifted_pairs(recorded_input, frame)) for frame in frames]
        n_shifted = sum(1 for shifted in shifted_frames if shifted)
        is_defined[row] = len(frames) > 0, n_shifted > 0
        for frame, shifted in zip(frames, shifted_frames, strict=True):
            frame_groups = [(0, frame, 1 / len(frames))]
            frame_groups += [(1, moved, 1 / len(shifted) / n_shifted) for moved in shifted]
            for kind, group_pairs, weight in frame_groups:
                pairs.extend((row, i, j, len(groups)) for i, j in group_pairs)
                groups.append((row, kind, weight))
    pair_columns = torch.tensor(pairs, dtype=torch.long, device=batch.device).view(-1, 4)
    group_columns = torch.tensor([group[:2] for group in groups], dtype=torch.long, device=batch.device).view(-1, 2)
    return _ArgumentIndex(
        batch_rows=pair_columns[:, 0],
        source_positions=pair_columns[:, 1],
        target_positions=pair_columns[:, 2],
        group_ids=pair_columns[:, 3],
        group_rows=group_columns[:, 0],
        group_kinds=group_columns[:, 1],
        group_weights=torch.tensor([group[2] for group in groups], dtype=torch.float32, device=batch.device),
        is_defined=torch.from_numpy(is_defined).to(batch.device),
    )


def _shifted_pairs(recorded_input: RecordedInput, pairs: Sequence[TokenPair]) -> Iterator[list[TokenPair]]:
    """The pairs shifted by a few tokens, if all of them are non-special tokens there."""
    non_special = set(np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE).tolist())
    for shift in SHIFTS:
        shifted = [(i + shift, j + shift) for i, j in pairs]
        if all({i, j} <= non_special for i, j in shifted):
            yield shifted


def _strongest_links(layer: LayerActivations, token_batch: TokenBatch, prepared: _ArgumentIndex) -> Tensor:
    """(batch, head, 4); NaN if a sentence has no frame, or none that can be shifted."""
    attention = layer.attention
    batch, heads = attention.shape[:2]
    columns = prepared.group_rows * 2 + prepared.group_kinds
    group_weights = prepared.group_weights.to(attention.dtype)[:, None]
    by_direction: list[Tensor] = []
    for source, target in (
        (prepared.source_positions, prepared.target_positions),
        (prepared.target_positions, prepared.source_positions),
    ):
        weights = attention[prepared.batch_rows, :, source, target]
        index = prepared.group_ids[:, None].expand_as(weights)
        highest = attention.new_zeros(len(prepared.group_rows), heads).scatter_reduce_(0, index, weights, "amax")
        means = attention.new_zeros(batch * 2, heads).index_add_(0, columns, highest * group_weights)
        by_direction.append(means.view(batch, 2, heads).masked_fill(~prepared.is_defined[..., None], torch.nan))
    return torch.cat(by_direction, 1)[:, [0, 2, 1, 3]].transpose(1, 2)
