"""Pairs of a predicate and what fills its roles, and how strongly each head links them (kovaleva2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bertology.corpus.sentence import Frame as Proposition
from bertology.corpus.sentence import Sentence, Span
from bertology.encoder.pieces import Special
from bertology.recording.annotation import pieces_of_words
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Select = Literal["far", "paper", "all"]
DIRECTIONS: tuple[str, ...] = ("role to predicate", "predicate to role")
LABELS = (*DIRECTIONS, *(f"{direction}, elsewhere" for direction in DIRECTIONS))
NEAR = 2
LONGEST_SENTENCE, LONGEST_ROLE = 12, 3
SHIFTS = (-4, -3, -2, -1, 1, 2, 3, 4)
"""How far the same pairs are moved along the sentence for what a head does there anyway."""


def is_core(role: str) -> bool:
    """Whether a role is one of the numbered ones, which every sense of a predicate defines for itself."""
    name = role.removeprefix("R-").removeprefix("C-")
    return name.removeprefix("ARG").removeprefix("A")[:1].isdigit()


def is_far(argument: Span, predicate: int) -> bool:
    """Whether no word of the argument is the predicate or within two words of it."""
    return all(abs(word - predicate) > NEAR for word in range(argument.start, argument.end))


def propositions(part: Sentence, select: Select) -> Iterator[tuple[Proposition, tuple[Span, ...]]]:
    """The propositions of a sentence with those of their arguments that count; none where none does.

    `far`: arguments that lie more than two words from their predicate. `paper`: those of sentences of at most twelve
    words and a single predicate, every argument of at most three words and far, one of them at least core.
    """
    frames = part.frames or ()
    if select == "paper" and not (len(part) <= LONGEST_SENTENCE and len(frames) == 1 and _suits(frames[0])):
        return
    for frame in frames:
        kept = tuple(one for one in frame.arguments if select != "far" or is_far(one, frame.predicate))
        if kept:
            yield frame, kept


def _suits(frame: Proposition) -> bool:
    short = all(one.end - one.start <= LONGEST_ROLE and is_far(one, frame.predicate) for one in frame.arguments)
    return short and any(is_core(one.label) for one in frame.arguments)


def linked_pieces(entry: Entry, select: Select, legacy: bool) -> Iterator[list[tuple[int, int]]]:
    """For each proposition the pairs of a piece of an argument and a piece of the predicate.

    `legacy` pairs the first with the first and so on, as the released code does, instead of each with each.
    """
    pieces = pieces_of_words(entry)
    start = 0
    for part in entry.input.parts:
        for frame, arguments in propositions(part, select):
            sources = [p for one in arguments for w in range(one.start, one.end) for p in pieces.get(start + w, ())]
            targets = pieces.get(start + frame.predicate, [])
            pairs = zip(sources, targets, strict=False) if legacy else ((i, j) for i in sources for j in targets)
            found = [(i, j) for i, j in pairs if i != j]
            if found:
                yield found
        start += len(part)


class _Prepared(NamedTuple):
    """All pairs of a batch: `entry`, `source`, `target`, and the `group` in which each is one of those to choose from.

    A group is a proposition where it stands (kind 0) or moved along the sentence (kind 1); `owner`, `kind` and `weight`
    are those of the groups: the entry's row, and what part of its mean each makes.
    """

    entry: Tensor
    source: Tensor
    target: Tensor
    group: Tensor
    owner: Tensor
    kind: Tensor
    weight: Tensor
    there: Tensor


@cache
def role_weights(select: Select = "far", legacy: bool = False) -> ReducedSite:
    """The site of the highest weight between the pieces of a predicate and of its roles, mean over propositions."""
    return ReducedSite(
        f"attention.roles.{select}" + (".legacy" if legacy else ""),
        ("measure",),
        "the most attention between pieces of a predicate and of its roles, and between pieces as far apart elsewhere",
        _strongest_links,
        LABELS,
        prepare=lambda frame: _prepare(frame, select, legacy),
    )


def _prepare(frame: Frame, select: Select, legacy: bool) -> _Prepared:
    import torch

    pairs: list[tuple[int, int, int, int]] = []
    groups: list[tuple[int, int, float]] = []
    there = np.zeros((len(frame.entries), 2), np.bool_)
    for row, shown in enumerate(frame.entries):
        found = list(linked_pieces(shown, select, legacy))
        moved = [list(_moved(shown, some)) for some in found]
        some_moved = sum(1 for shifted in moved if shifted)
        there[row] = len(found) > 0, some_moved > 0
        for own, shifted in zip(found, moved, strict=True):
            parts = [(0, own, 1 / len(found))] + [(1, one, 1 / len(shifted) / some_moved) for one in shifted]
            for kind, some, weight in parts:
                pairs.extend((row, i, j, len(groups)) for i, j in some)
                groups.append((row, kind, weight))
    places = torch.tensor(pairs, dtype=torch.long, device=frame.device).view(-1, 4)
    owners = torch.tensor([group[:2] for group in groups], dtype=torch.long, device=frame.device).view(-1, 2)
    entry, source, target, group = places.unbind(1)
    weight = torch.tensor([group[2] for group in groups], dtype=torch.float32, device=frame.device)
    some = torch.from_numpy(there).to(frame.device)
    return _Prepared(entry, source, target, group, owners[:, 0], owners[:, 1], weight, some)


def _moved(entry: Entry, pairs: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """The same pairs a few pieces on or back, where all of them fall on ordinary pieces."""
    ordinary = set(np.flatnonzero(entry.pieces.special == Special.NONE).tolist())
    for shift in SHIFTS:
        shifted = [(i + shift, j + shift) for i, j in pairs]
        if all({i, j} <= ordinary for i, j in shifted):
            yield shifted


def _strongest_links(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 4); NaN where a sentence has no proposition, or none that can be moved."""
    import torch

    maps = layer.attention
    batch, heads = maps.shape[:2]
    found: list[Tensor] = []
    for source, target in ((prepared.source, prepared.target), (prepared.target, prepared.source)):
        weights = maps[prepared.entry, :, source, target]
        index = prepared.group[:, None].expand_as(weights)
        highest = maps.new_zeros(len(prepared.owner), heads).scatter_reduce_(0, index, weights, "amax")
        means = maps.new_zeros(batch * 2, heads)
        means.index_add_(0, prepared.owner * 2 + prepared.kind, highest * prepared.weight.to(maps.dtype)[:, None])
        found.append(means.view(batch, 2, heads).masked_fill(~prepared.there[..., None], torch.nan))
    return torch.cat(found, 1)[:, [0, 2, 1, 3]].transpose(1, 2)
