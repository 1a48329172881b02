"""What each of Vig's six patterns looks at, as weights on a map: its targets, others as far apart, and the whole."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.word_relations import Relations, part_of_words
from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

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
        prepare=lambda frame: _weights(frame, relations, itself),
    )


def _shares(layer: LayerActivations, frame: Frame, weights: Tensor) -> Tensor:
    """(batch, head, label); NaN where a sentence has no piece with such a target."""
    return layer.attention.flatten(2) @ weights.to(layer.attention.dtype)


def _weights(frame: Frame, relations: Relations, itself: bool) -> Tensor:
    """(batch, from x to, label): each label is the inner product of a map with its column."""
    import torch

    size = frame.width
    found = np.zeros((len(frame.entries), size, size, len(LABELS)), np.float32)
    for row, entry in enumerate(frame.entries):
        n = len(entry.pieces)
        found[row, :n, :n] = np.stack(_columns(entry, relations, itself), axis=-1)
    return torch.from_numpy(found).to(frame.device).flatten(1, 2)


def _columns(entry: Entry, relations: Relations, itself: bool) -> list[Floats]:
    masks = target_masks(entry, relations, itself)
    worded = entry.pieces.word >= 0
    ordinary = entry.pieces.special == Special.NONE
    part = entry.pieces.part
    inner = worded[:, None] & worded[None, :]
    same, other = (inner & (part[:, None] == part[None, :])), (inner & (part[:, None] != part[None, :]))
    sources = {name: np.asarray(mask.any(1)) for name, mask in masks.items()}
    averaged = {name: _row_mean(mask, sources[name]) for name, mask in masks.items()}
    columns = [averaged[name] for name in PATTERNS]
    for name in CONTROLLED:
        alike = other if name == "related, other sentence" else same
        columns.append(_at_same_offsets(averaged[name], masks[name], alike & ~masks[name]))
    everything = ordinary[:, None] & ordinary[None, :]
    columns += [_row_mean(everything & sources[name][:, None], sources[name]) for name in BETWEEN_WORDS]
    return columns


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


def _row_mean(chosen: NDArray[np.bool_], rows: NDArray[np.bool_]) -> Floats:
    """Weights whose inner product with a map is the mean over `rows` of the mass on `chosen`; NaN without rows."""
    count = rows.sum()
    return chosen / count if count else np.full(chosen.shape, np.nan)


def _at_same_offsets(weights: Floats, targets: NDArray[np.bool_], others: NDArray[np.bool_]) -> Floats:
    """Weights of what a head has on `others` that lie at the offsets of the targets, each offset as often as there.

    Where no other pair lies at an offset the targets there stand for themselves, so that the head gains nothing.
    """
    if not targets.any():
        return np.full(weights.shape, np.nan)
    n = len(weights)
    offset = np.subtract.outer(np.arange(n), np.arange(n)) + n - 1
    wanted = np.bincount(offset[targets], weights=weights[targets], minlength=2 * n - 1)
    there = np.bincount(offset[others], minlength=2 * n - 1)
    shared = np.divide(wanted, there, out=np.zeros_like(wanted), where=there > 0)
    return np.where(others, shared[offset], 0.0) + np.where(targets & (there[offset] == 0), weights, 0.0)
