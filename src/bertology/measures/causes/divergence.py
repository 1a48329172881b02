"""Where do two runs part? The states and the attention of the pieces that two forms of a text share, layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.corpus.corpus import Input, Item
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Pieces, Special
from bertology.maths.edit_distance import matched
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One form of a text: its pieces, (layer + 1, piece, width) states and (layer, head, from, to) attention."""

    pieces: Pieces
    states: Floats
    attention: list[Floats]


@dataclass(frozen=True)
class Divergence:
    """(layer + 1,) how far two runs are apart; NaN where nothing can be compared, as attention at the embeddings."""

    states: Floats
    first: Floats
    attention: Floats


def run_of(encoder: Encoder, shown: Input) -> Run | None:
    """One input through the model; None where it is too long or empty."""
    (pieces,) = encoder.tokenise([shown])
    if len(pieces) > encoder.max_pieces or not len(pieces):
        return None
    seen: list[Floats] = []

    def see(layer: LayerActivations) -> None:
        seen.append(layer.attention[0].double().cpu().numpy())

    frame = Frame([Entry(0, 0, 0, shown, pieces)], encoder.device)
    with torch.no_grad():
        output = encoder.run(frame.batch, on_layer=see, hidden=True)
    return Run(pieces, np.stack([_row(states) for states in output.hidden]), seen)


def divergence(encoder: Encoder, one: Item, other: Item) -> Divergence | None:
    """How far the runs of two forms of an item are apart, over all inputs in which they differ; None where none can be.

    `states`: 1 - cosine of the states of shared ordinary pieces, `first` of the first piece; `attention`: total
    variation of the distributions of shared pieces over shared pieces and all others together, over heads.
    """
    found: list[Divergence] = []
    for first, second in zip(one.inputs, other.inputs, strict=True):
        if first.words == second.words and [p.text for p in first.parts] == [p.text for p in second.parts]:
            continue
        runs = [run_of(encoder, shown) for shown in (first, second)]
        if runs[0] is not None and runs[1] is not None:
            found.append(_between(runs[0], runs[1]))
    if not found:
        return None
    return Divergence(*(_mean([getattr(some, name) for some in found]) for name in ("states", "first", "attention")))


def shared(one: Pieces, other: Pieces) -> list[tuple[int, int]]:
    """The places of the pieces that two texts share: those that stay in place, then those that have moved, in order."""
    first, second = one.ids.tolist(), other.ids.tolist()
    pairs = matched(first, second)
    taken, used = {a for a, _ in pairs}, {b for _, b in pairs}
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for place in range(len(second) - 1, -1, -1):
        if place not in used:
            waiting[second[place]].append(place)
    moved = [
        (place, waiting[piece].pop()) for place, piece in enumerate(first) if place not in taken and waiting[piece]
    ]
    return sorted([*pairs, *moved])


def _between(one: Run, other: Run) -> Divergence:
    pairs = shared(one.pieces, other.pieces)
    ordinary = [(a, b) for a, b in pairs if one.pieces.special[a] == Special.NONE == other.pieces.special[b]]
    rows, columns = np.array(pairs).reshape(-1, 2).T
    changes = [_moved_attention(a, b, rows, columns) for a, b in zip(one.attention, other.attention, strict=True)]
    return Divergence(
        _distance(one.states, other.states, ordinary),
        _distance(one.states, other.states, [(0, 0)]),
        np.array([np.nan, *changes]),
    )


def _distance(one: Floats, other: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    if not pairs:
        return np.full(len(one), np.nan)
    rows, columns = np.array(pairs).T
    first, second = one[:, rows], other[:, columns]
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return 1 - ((first * second).sum(-1) / lengths.clip(1e-12)).mean(-1)


def _moved_attention(one: Floats, other: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """Total variation, 0 the same to 1 nothing in common; what goes to pieces not shared is one more target."""
    if not len(rows):
        return float("nan")
    first, second = one[:, rows][:, :, rows], other[:, columns][:, :, columns]
    rest = np.abs(first.sum(-1) - second.sum(-1))
    return float((np.abs(first - second).sum(-1) + rest).mean() / 2)


def _mean(values: Sequence[Floats]) -> Floats:
    stacked = np.stack(values)
    there = np.isfinite(stacked)
    total = np.where(there, stacked, 0.0).sum(0)
    return np.divide(total, there.sum(0), out=np.full(total.shape, np.nan), where=there.any(0))


def _row(states: Tensor) -> Floats:
    return states[0].double().cpu().numpy()
