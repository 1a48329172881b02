"""From a mention, which earlier one does a head look at most: the searches, and the site that holds their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.measures.heads.mentions import Mention, mentions_of
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite
from bertology.recording.word_sites import NOTHING, strongest_word

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.word_level import Words

Among = Literal["preceding", "mentions", "words"]


@dataclass(frozen=True, slots=True)
class Search:
    """A mention at the word `source`, and the mentions among which its antecedent is looked for.

    `words` are the words of the candidates on the word axis of the input, `right` which of them are antecedents.
    """

    source: int
    mention: Mention
    candidates: tuple[Mention, ...]
    words: tuple[int, ...]
    right: tuple[bool, ...]


def searches(entry: Entry, among: Among) -> list[Search]:
    """One search for each mention that corefers with an earlier one; a pronoun with any other, among all `mentions`."""
    shown = set(entry.pieces.word.tolist())
    found: list[Search] = []
    start = 0
    for part in entry.input.parts:
        there = [mention for mention in mentions_of(part) if mention.head + start in shown]
        for place, mention in enumerate(there):
            before, after = there[:place], there[place + 1 :]
            others = before + after if among == "mentions" else before
            right = tuple(other.cluster == mention.cluster for other in others)
            needed = others if mention.kind == "pronoun" else before
            if any(other.cluster == mention.cluster for other in needed):
                words = tuple(other.head + start for other in others)
                found.append(Search(mention.head + start, mention, tuple(others), words, right))
        start += len(part)
    return found


def new_words(entries: Sequence[Entry]) -> list[int]:
    """For each entry its first word that no earlier window of the same input had: each word is asked about once.

    A window begins half of the last one further on (see `recording.shorten`).
    """
    lengths = {(entry.item, entry.variant, entry.window): entry.pieces.words for entry in entries}
    found: list[int] = []
    for entry in entries:
        last = lengths.get((entry.item, entry.variant, entry.window - 1), 0) if entry.window else 0
        found.append(last - max(1, last // 2) if last else 0)
    return found


class _Prepared(NamedTuple):
    """Searches of a batch: the entry and source of each, its candidates (search, candidate) and which of them exist."""

    words: Words
    entry: Tensor
    source: Tensor
    candidates: Tensor
    absent: Tensor


def strongest_candidate(among: Among) -> ReducedSite:
    """The site that holds for each mention's head word the candidate it attends to most: (1, word)."""
    return strongest_word() if among == "words" else _strongest_mention(among)


@cache
def _strongest_mention(among: Among) -> ReducedSite:
    return ReducedSite(
        f"attention.strongest_mention.{among}",
        ("direction", "word"),
        f"the head word that each mention's head word attends to most, among {among} mentions",
        _answers,
        prepare=lambda frame: _prepare(frame, among),
    )


def _prepare(frame: Frame, among: Among) -> _Prepared:
    import torch

    from bertology.recording.word_level import words_of

    asked = [(row, one) for row, entry in enumerate(frame.entries) for one in searches(entry, among)]
    places = np.zeros((len(asked), max((len(one.words) for _, one in asked), default=1)), np.int64)
    absent = np.ones(places.shape, np.bool_)
    for number, (_, one) in enumerate(asked):
        places[number, : len(one.words)], absent[number, : len(one.words)] = one.words, False
    rows, sources = (np.array(column, np.int64) for column in ([r for r, _ in asked], [one.source for _, one in asked]))
    arrays = (torch.from_numpy(array).to(frame.device) for array in (rows, sources, places, absent))
    entry, source, candidates, nothing = arrays
    return _Prepared(words_of(frame), entry, source, candidates, nothing)


def _answers(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 1, word) words; `NOTHING` at words that are not asked about."""
    import torch

    from bertology.recording.word_level import to_words

    maps = layer.attention
    count = prepared.words.count
    found = torch.full((*maps.shape[:2], 1, count), NOTHING, dtype=prepared.words.kind, device=maps.device)
    if len(prepared.entry):
        rows = to_words(maps, prepared.words)[prepared.entry, :, prepared.source]
        places = prepared.candidates[:, None].expand(-1, rows.shape[1], -1)
        best = rows.gather(2, places).masked_fill(prepared.absent[:, None], -1.0).argmax(-1, keepdim=True)
        found[prepared.entry, :, 0, prepared.source] = places.gather(2, best)[..., 0].to(found.dtype)
    return found
