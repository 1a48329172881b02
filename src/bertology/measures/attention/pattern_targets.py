"""What each of Vig's six patterns looks at, as weights on a map: its targets, others as far apart, and the whole."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Special
from bertology.measures.attention.word_relations import Relations, part_of_words
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.stretches import Stretches

Floats = NDArray[np.float64]

PATTERNS = (
    "next word",
    "previous word",
    "related, same sentence",
    "related, other sentence",
    "predictive words",
    "delimiters",
)
CONTROLLED = PATTERNS[2:5]
"""Patterns of content, for which a head that only minds distances is the baseline."""
BETWEEN_WORDS = PATTERNS[:5]
LABELS = (
    *PATTERNS,
    *(f"{name}: same offsets" for name in CONTROLLED),
    *(f"{name}: ordinary share" for name in BETWEEN_WORDS),
)


@cache
def pattern_site(relations: Relations = Relations(), itself: bool = False) -> ReducedSite:
    """The site that holds each head's share of attention on the targets of each pattern, its control and its whole."""
    suffix = ".itself" * itself + (f".{relations.fingerprint}" if relations.fingerprint else "")
    return ReducedSite(
        f"attention.patterns{suffix}",
        ("pattern",),
        "share of each head's attention on the targets of Vig's six patterns, and on others at the same offsets",
        _shares,
        LABELS,
        prepare=lambda frame: _prepare(frame, relations, itself),
    )


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    Targets are few, so they are listed: `pairs` are the batch row, source, target and pattern of each, and the weight
    of its source. `controls` is (batch, control, from x to), for those of `CONTROLLED` in `controlled` that the batch
    has; `rows` (batch, piece, pattern) the weight of each source; `there` (batch, label) which labels have a value.
    """

    pairs: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
    controls: Tensor
    controlled: list[int]
    rows: Tensor
    there: Tensor
    stretches: tuple[Stretches, ...]


def _shares(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, label); NaN where a sentence has no piece with such a target."""
    import torch

    from bertology.recording.stretches import ordinary_sum

    maps = layer.attention
    batch, heads = maps.shape[:2]
    entry, source, target, pattern, weight = prepared.pairs
    weights = maps[entry, :, source, target] * weight.to(maps.dtype)[:, None]
    own = maps.new_zeros(batch * len(PATTERNS), heads).index_add_(0, entry * len(PATTERNS) + pattern, weights)
    controls = maps.new_zeros(batch, heads, len(CONTROLLED))
    controls[..., prepared.controlled] = maps.flatten(2) @ prepared.controls.to(maps.dtype).transpose(1, 2)
    inside = ordinary_sum(maps, prepared.stretches) @ prepared.rows.to(maps.dtype)
    found = torch.cat([own.view(batch, -1, heads).transpose(1, 2), controls, inside], -1)
    return found.masked_fill(~prepared.there[:, None], torch.nan)


def _prepare(frame: Frame, relations: Relations, itself: bool) -> _Prepared:
    import torch

    from bertology.recording.stretches import stretches_of

    count, size = len(frame.entries), frame.width
    pairs: list[NDArray[np.int64]] = []
    weights: list[Floats] = []
    controls = np.zeros((count, len(CONTROLLED), size, size), np.float32)
    rows = np.zeros((count, size, len(BETWEEN_WORDS)), np.float32)
    there = np.zeros((count, len(LABELS)), np.bool_)
    for row, entry in enumerate(frame.entries):
        masks = target_masks(entry, relations, itself)
        n = len(entry.pieces)
        for number, (name, mask) in enumerate(masks.items()):
            sources = mask.any(1)
            share = 1 / max(1, int(sources.sum()))
            listed = np.argwhere(mask)
            pairs.append(np.insert(listed, [0, 2], [row, number], axis=1))
            weights.append(np.full(len(listed), share))
            there[row, [place for place, label in enumerate(LABELS) if label.startswith(name)]] = bool(sources.any())
            if name in BETWEEN_WORDS:
                rows[row, :n, number] = sources * share
            if name in CONTROLLED and len(listed):
                alike = _alike(entry, other=name == "related, other sentence")
                controls[row, CONTROLLED.index(name), :n, :n] = _at_same_offsets(
                    mask.astype(np.float64) * share, mask, alike & ~mask
                )
    controlled = [place for place in range(len(CONTROLLED)) if controls[:, place].any()]
    entry, source, target, pattern = torch.from_numpy(np.concatenate(pairs)).to(frame.device).unbind(1)
    return _Prepared(
        (entry, source, target, pattern, torch.from_numpy(np.concatenate(weights)).to(frame.device)),
        torch.from_numpy(controls[:, controlled]).to(frame.device).flatten(2),
        controlled,
        torch.from_numpy(rows).to(frame.device),
        torch.from_numpy(there).to(frame.device),
        stretches_of(frame),
    )


def _alike(entry: Entry, *, other: bool) -> NDArray[np.bool_]:
    """(from, to) pairs of pieces of words in the same sentence, or in different ones."""
    worded, part = entry.pieces.word >= 0, entry.pieces.part
    inner = worded[:, None] & worded[None, :]
    return inner & ((part[:, None] != part[None, :]) if other else (part[:, None] == part[None, :]))


def target_masks(entry: Entry, relations: Relations, itself: bool = False) -> dict[str, NDArray[np.bool_]]:
    """(from, to) for each pattern: which pieces are its targets, seen from which."""
    pieces = entry.pieces
    word, part = pieces.word, pieces.part
    ordinary = pieces.special == Special.NONE
    inner = (word >= 0)[:, None] & (word >= 0)[None, :]
    together = inner & (part[:, None] == part[None, :])
    step = word[None, :] - word[:, None]
    # A piece of no word has the index -1: what is looked up there is masked by `inner`.
    parts = part_of_words(entry)
    sizes = (len(parts), len(parts))
    related = relations.related(entry) if len(parts) else np.zeros(sizes, np.bool_)
    predictive = relations.predictive(entry) if len(parts) else np.zeros(sizes, np.bool_)
    by_piece = [_of_pieces(pairs, word) for pairs in (related, predictive)]
    own = np.eye(len(pieces), dtype=np.bool_)
    delimiter = (pieces.special == Special.CLS) | (pieces.special == Special.SEP)
    elsewhere = step != 0
    return {
        "next word": together & (step == 1),
        "previous word": together & (step == -1),
        "related, same sentence": together & by_piece[0] & ((elsewhere | own) if itself else elsewhere),
        "related, other sentence": inner & ~together & by_piece[0],
        "predictive words": together & ((by_piece[1] & elsewhere) | (~elsewhere & ~own)),
        "delimiters": ordinary[:, None] & delimiter[None, :],
    }


def _of_pieces(pairs: NDArray[np.bool_], word: NDArray[np.int32]) -> NDArray[np.bool_]:
    if not pairs.size:
        return np.zeros((len(word), len(word)), np.bool_)
    return pairs[word[:, None], word[None, :]]


def _at_same_offsets(weights: Floats, targets: NDArray[np.bool_], others: NDArray[np.bool_]) -> Floats:
    """Weights of what a head has on `others` that lie at the offsets of the targets, each offset as often as there.

    Where no other pair lies at an offset the targets there stand for themselves, so that the head gains nothing.
    """
    n = len(weights)
    offset = np.subtract.outer(np.arange(n), np.arange(n)) + n - 1
    wanted = np.bincount(offset[targets], weights=weights[targets], minlength=2 * n - 1)
    there = np.bincount(offset[others], minlength=2 * n - 1)
    shared = np.divide(wanted, there, out=np.zeros_like(wanted), where=there > 0)
    return np.where(others, shared[offset], 0.0) + np.where(targets & (there[offset] == 0), weights, 0.0)
