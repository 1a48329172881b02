"""What each of Vig's six patterns looks at, as weights on a map: its targets, others as far apart, and the whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Special
from bertology.measures.attention.word_relations import Relations, WordPairs
from bertology.recording.entry import Entry
from bertology.recording.piece_kinds import KINDS, SOURCES
from bertology.recording.sites import ReducedSite
from bertology.recording.wanted import Wanted

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.pairs import Pairs

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
        wants=lambda prepared: Wanted(pairs=prepared.pairs),
    )


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    `pairs` are the targets of each pattern between words, and controls for those of `CONTROLLED` in `controlled` that
    the batch has; `delimiters` is (batch,) the weight of each source of that pattern, `rows` (batch, piece, pattern) of
    the others; `there` (batch, label) which labels have a value.
    """

    pairs: Pairs
    delimiters: Tensor
    controlled: Tensor
    rows: Tensor
    there: Tensor


def _shares(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, label); NaN where a sentence has no piece with such a target."""
    import torch

    from bertology.recording.pairs import pair_sums
    from bertology.recording.rows import rows_of

    rows, sums = rows_of(layer, frame), pair_sums(layer, prepared.pairs)
    controls = sums.new_zeros(*sums.shape[:2], len(CONTROLLED))
    controls.index_copy_(-1, prepared.controlled, sums[..., len(BETWEEN_WORDS) :])
    ordinary, delimiting = SOURCES.index("ordinary"), slice(KINDS.index("[SEP]") + 1)
    delimiters = rows.to_kinds[:, :, ordinary, delimiting].sum(-1, keepdim=True) * prepared.delimiters[:, None, None]
    inside = rows.ordinary @ prepared.rows.to(sums.dtype)
    found = torch.cat([sums[..., : len(BETWEEN_WORDS)], delimiters, controls, inside], -1)
    return found.masked_fill(~prepared.there[:, None], torch.nan)


def _prepare(frame: Frame, relations: Relations, itself: bool) -> _Prepared:
    import torch

    from bertology.recording.pairs import Pairs

    masks = _masks(frame, relations, itself)
    sources = masks.any(-1)
    count = sources.sum(-1)
    share = 1 / count.clamp(min=1)
    row, pattern, source, target = torch.nonzero(masks[:, : len(BETWEEN_WORDS)]).T
    first, last = PATTERNS.index(CONTROLLED[0]), PATTERNS.index(CONTROLLED[-1]) + 1
    controlled = [place for place in range(len(CONTROLLED)) if bool(count[:, first + place].any())]
    chosen = [first + place for place in controlled]
    weights = _at_same_offsets(masks[:, chosen], _alike(frame, controlled)) if controlled else None
    known = count > 0
    there = torch.cat([known, known[:, first:last], known[:, : len(BETWEEN_WORDS)]], 1)
    rows = (sources * share[..., None])[:, : len(BETWEEN_WORDS)].transpose(1, 2).contiguous()
    scale = share[:, [*range(len(BETWEEN_WORDS)), *chosen]]
    pairs = Pairs(torch.stack([row, source, target, pattern]), scale, frame.width, weights)
    places = torch.tensor(controlled, dtype=torch.long, device=frame.device)
    return _Prepared(pairs, share[:, PATTERNS.index("delimiters")], places, rows, there)


def _inner(frame: Frame) -> tuple[Tensor, Tensor]:
    """(batch, from, to): pairs of pieces of words, and those of words in the same sentence."""
    worded = frame.word >= 0
    inner = worded[:, :, None] & worded[:, None]
    return inner, inner & (frame.part[:, :, None] == frame.part[:, None])


def _masks(frame: Frame, relations: Relations, itself: bool) -> Tensor:
    """(batch, pattern, from, to) booleans: which pieces are targets of a pattern, seen from which."""
    import torch

    inner, together = _inner(frame)
    step = frame.word[:, None] - frame.word[:, :, None]
    elsewhere = step != 0
    own = torch.eye(frame.width, dtype=torch.bool, device=frame.device)
    related = _same_key(frame, relations) | _by_piece(frame, relations.near)
    predictive = _by_piece(frame, relations.predictive)
    delimiter = frame.real & ((frame.special == Special.CLS) | (frame.special == Special.SEP))
    masks = {
        "next word": together & (step == 1),
        "previous word": together & (step == -1),
        "related, same sentence": together & related & ((elsewhere | own) if itself else elsewhere),
        "related, other sentence": inner & ~together & related,
        "predictive words": together & ((predictive & elsewhere) | (~elsewhere & ~own)),
        "delimiters": frame.ordinary[:, :, None] & delimiter[:, None],
    }
    return torch.stack([masks[name] for name in PATTERNS], 1)


def _same_key(frame: Frame, relations: Relations) -> Tensor:
    """(batch, from, to): pieces of words with the same lemma or form."""
    import torch

    keys = np.full((len(frame.entries), frame.width), -1, np.int64)
    for row, entry in enumerate(frame.entries):
        word = entry.pieces.word
        keys[row, : len(word)] = np.where(word >= 0, np.append(relations.keys(entry), -1)[word], -1)
    key = torch.from_numpy(keys).to(frame.device)
    return (key[:, :, None] == key[:, None]) & (key >= 0)[:, None]


def _by_piece(frame: Frame, pairs: Callable[[Entry], WordPairs]) -> Tensor:
    """(batch, from, to) pairs of words as pairs of their pieces; nothing is said of pieces of no word."""
    import torch

    listed = [pairs(entry) for entry in frame.entries]
    if not any(map(len, listed)):
        return torch.zeros((len(listed), frame.width, frame.width), dtype=torch.bool, device=frame.device)
    most = max(1, *(entry.pieces.words for entry in frame.entries))
    words = np.zeros((len(frame.entries), most, most), np.bool_)
    for row, (first, second) in enumerate(own.T for own in listed):
        words[row, first, second] = True
    table = torch.from_numpy(words).to(frame.device)
    place = frame.word.clamp(min=0)
    rows = table.gather(1, place[:, :, None].expand(-1, -1, most))
    return rows.gather(2, place[:, None].expand(-1, frame.width, -1))


def target_masks(entry: Entry, relations: Relations, itself: bool = False) -> dict[str, NDArray[np.bool_]]:
    """(from, to) for each pattern: which pieces are its targets, seen from which."""
    from bertology.recording.frame import Frame

    (masks,) = _masks(Frame([entry]), relations, itself)
    return dict(zip(PATTERNS, masks.numpy(), strict=True))


def _alike(frame: Frame, controlled: list[int]) -> Tensor:
    """(batch, pattern or 1, from, to): the pairs that targets of each of `CONTROLLED` are among, 1 for all the same."""
    import torch

    inner, together = _inner(frame)
    other = CONTROLLED.index("related, other sentence")
    if other not in controlled:
        return together[:, None]
    return torch.stack([inner & ~together if place == other else together for place in controlled], 1)


def _at_same_offsets(targets: Tensor, alike: Tensor) -> Tensor:
    """(batch, pattern, from, to) weights of pairs at the offsets of the targets, each offset as often as there.

    Others are the pairs `alike` that are no targets. Where no other pair lies at an offset the targets there stand for
    themselves, so that the head gains nothing.
    """
    wanted = _by_offset(targets)
    there = _by_offset(alike) - wanted
    found = _along_diagonals(wanted / there.clamp(min=1)).mul_(alike & ~targets)
    alone = (wanted > 0) & (there == 0)
    if bool(alone.any()):
        found += _along_diagonals(alone) * targets
    return found


def _along_diagonals(offsets: Tensor) -> Tensor:
    """(..., from, to): the value of each offset from 1 - n to n - 1, at all pairs that far apart."""
    return offsets.unfold(-1, (offsets.shape[-1] + 1) // 2, 1).flip(-2)


def _by_offset(pairs: Tensor) -> Tensor:
    """(batch, pattern, offset) how many pairs are true at each offset from 1 - n to n - 1."""
    import torch

    n = pairs.shape[-1]
    # Row by row one place more to the left: what lies along a diagonal comes to lie in a column.
    skewed = torch.nn.functional.pad(pairs.flip(-2), (0, n)).flatten(-2)[..., : n * (2 * n - 1)]
    # Adding 255 rows at a time bytes are enough, and adding bytes is fast.
    parts = skewed.unflatten(-1, (n, 2 * n - 1)).view(torch.uint8).split(255, -2)
    return torch.stack([part.sum(-2, dtype=torch.uint8).float() for part in parts]).sum(0)
