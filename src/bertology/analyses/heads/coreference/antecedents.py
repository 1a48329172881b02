"""Antecedent queries: the candidate mentions of each mention, and the site with each head's strongest candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.analyses.heads.coreference.mentions import Mention, extract_mentions
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite, strongest_word_site
from bertology.statistics.words import NO_WORD, WordSlots, word_attention, word_slots

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

CandidateSet = Literal["preceding", "all-mentions", "all-words"]


@dataclass(frozen=True, slots=True)
class AntecedentQuery:
    """A mention with head word `source`, and the candidate mentions for its antecedent.

    `candidate_words` are the head words of the candidates on the word axis of the input.
    """

    source: int
    mention: Mention
    candidates: tuple[Mention, ...]
    candidate_words: tuple[int, ...]
    is_antecedent: tuple[bool, ...]


def antecedent_queries(recorded_input: RecordedInput, candidate_set: CandidateSet) -> list[AntecedentQuery]:
    """One query per mention that corefers with an earlier one; with `all-mentions`, pronouns may refer forwards."""
    present = set(recorded_input.tokens.word_ids.tolist())
    queries: list[AntecedentQuery] = []
    start = 0
    for segment in recorded_input.text.segments:
        mentions = [mention for mention in extract_mentions(segment) if mention.head_word_index + start in present]
        for index, mention in enumerate(mentions):
            before, after = mentions[:index], mentions[index + 1 :]
            candidates = before + after if candidate_set == "all-mentions" else before
            is_antecedent = tuple(candidate.cluster == mention.cluster for candidate in candidates)
            searched = candidates if mention.mention_type == "pronoun" else before
            if any(candidate.cluster == mention.cluster for candidate in searched):
                words = tuple(candidate.head_word_index + start for candidate in candidates)
                source = mention.head_word_index + start
                queries.append(AntecedentQuery(source, mention, tuple(candidates), words, is_antecedent))
        start += len(segment)
    return queries


def first_unseen_words(inputs: Sequence[RecordedInput]) -> list[int]:
    """For each input its first word that no earlier window of the same input has, so that each word is used once.

    A window starts half of the previous window after it (see `recording.overflow`).
    """
    n_words = {(i.example_index, i.input_index, i.window_index): i.tokens.n_words for i in inputs}
    first_words: list[int] = []
    for recorded_input in inputs:
        previous = (recorded_input.example_index, recorded_input.input_index, recorded_input.window_index - 1)
        length = n_words.get(previous, 0) if recorded_input.window_index else 0
        first_words.append(length - max(1, length // 2) if length else 0)
    return first_words


class _MentionIndex(NamedTuple):
    """The queries of a batch: batch row and source word, (query, candidate) words, and padding of the candidates."""

    word_slots: WordSlots
    batch_rows: Tensor
    source_words: Tensor
    candidate_words: Tensor
    is_absent: Tensor


def strongest_candidate_site(candidate_set: CandidateSet) -> ReducedSite:
    """The site that holds, for each mention's head word, the candidate it attends to most: (1, word)."""
    return strongest_word_site() if candidate_set == "all-words" else _strongest_mention_site(candidate_set)


@cache
def _strongest_mention_site(candidate_set: CandidateSet) -> ReducedSite:
    return ReducedSite(
        f"attention.strongest_mention.{candidate_set.replace('-', '_')}",
        ("direction", "word"),
        "head word that each mention's head word attends to most, among "
        + ("preceding mentions" if candidate_set == "preceding" else "all mentions"),
        _strongest_candidates,
        prepare=lambda batch: _prepare(batch, candidate_set),
    )


def _prepare(batch: TokenBatch, candidate_set: CandidateSet) -> _MentionIndex:
    queries = [
        (row, query)
        for row, recorded_input in enumerate(batch.inputs)
        for query in antecedent_queries(recorded_input, candidate_set)
    ]
    words = np.zeros((len(queries), max((len(query.candidate_words) for _, query in queries), default=1)), np.int64)
    is_absent = np.ones(words.shape, np.bool_)
    for index, (_, query) in enumerate(queries):
        words[index, : len(query.candidate_words)] = query.candidate_words
        is_absent[index, : len(query.candidate_words)] = False
    rows = np.array([row for row, _ in queries], np.int64)
    sources = np.array([query.source for _, query in queries], np.int64)
    arrays = (torch.from_numpy(array).to(batch.device) for array in (rows, sources, words, is_absent))
    return _MentionIndex(word_slots(batch), *arrays)


def _strongest_candidates(layer: LayerActivations, batch: TokenBatch, prepared: _MentionIndex) -> Tensor:
    """(batch, head, 1, word) words; `NO_WORD` at words without a query."""
    attention, slots = layer.attention, prepared.word_slots
    strongest = torch.full(
        (*attention.shape[:2], 1, slots.max_words), NO_WORD, dtype=slots.index_dtype, device=attention.device
    )
    if len(prepared.batch_rows):
        rows = word_attention(attention, slots)[prepared.batch_rows, :, prepared.source_words]
        words = prepared.candidate_words[:, None].expand(-1, rows.shape[1], -1)
        best = rows.gather(2, words).masked_fill(prepared.is_absent[:, None], -1.0).argmax(-1, keepdim=True)
        strongest[prepared.batch_rows, :, 0, prepared.source_words] = words.gather(2, best)[..., 0].to(strongest.dtype)
    return strongest
