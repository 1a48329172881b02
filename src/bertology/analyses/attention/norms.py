"""What does each head take over from the pieces it looks at (kobayashi2020)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.maths.rank_correlation import spearman
from bertology.measures.attention.head_measures import means_by_label
from bertology.measures.attention.seen_pieces import seen_pieces
from bertology.measures.attention.special_tokens import shares_with_ordinary
from bertology.measures.attention.value_vectors import head_vectors
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.estimate import Estimates
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

SHARES = tuple(f"norm to {kind}" for kind in KINDS)
RANKS = ("order of weights and norms", "order of attention received and length")
SPREAD = "spread of lengths"
_RELATED = dict.fromkeys(RANKS, "Spearman correlation, -1 to 1") | {SPREAD: "coefficient of variation, 0 all alike"}
PUNCTUATION = f"norm to {KINDS[2]}, ordinary"
UNITS = (
    dict.fromkeys(SHARES, "share, 0 to 1")
    | _RELATED
    | {PUNCTUATION: "share, 0 to 1"}
    | {f"{name}, ordinary": unit for name, unit in _RELATED.items()}
)
ALL_SHARES = (*SHARES, PUNCTUATION)
WEIGHTS, EVEN = "weights alone", "uniform attention"
NEAR = 1e-4
"""Pieces whose attention received differs by less than this share of the mean are in no order to speak of."""


@reduction(
    "attention.norms",
    axes=("measure",),
    labels=(*UNITS, *(f"{chance}, {share}" for chance in (WEIGHTS, EVEN) for share in ALL_SHARES)),
    about="share of the summed norms of attention x f(x) by target, and how norms and weights go together",
    prepare=kinds_of,
    vectors=True,
    version=3,
)
def NORMS(layer: LayerActivations, frame: Frame, kinds: Tensor) -> Tensor:
    """(batch, head, measure); the shares again with all f(x) equally long, and with all that is seen weighed alike."""
    import torch

    weights = layer.attention.float()
    lengths = head_vectors(layer).norm(dim=-1)
    norms = weights * lengths.unsqueeze(2)
    seen = seen_pieces(layer, frame)
    even = seen * lengths.unsqueeze(2)
    shares = [shares_with_ordinary(some, kinds, frame) for some in (norms, weights, even)]
    related = [_related(weights, norms, lengths, seen, kept) for kept in (frame.real, frame.ordinary)]
    last = len(SHARES)
    return torch.cat([shares[0][..., :last], related[0], shares[0][..., last:], related[1], *shares[1:]], -1)


def _related(weights: Tensor, norms: Tensor, lengths: Tensor, seen: Tensor, kept: Tensor) -> Tensor:
    """(batch, head, 3): both correlations and the spread, from and to the pieces that are kept."""
    import torch

    seen = seen & kept[:, None, :, None] & kept[:, None, None, :]
    received = (weights * seen).sum(2) / seen.sum(2).clamp(min=1)
    beside = [
        spearman(weights, norms, seen).nanmean(-1),
        spearman(received, lengths, kept.unsqueeze(1).expand_as(lengths), near=NEAR),
        _variation(lengths, kept),
    ]
    return torch.stack(beside, -1)


def _variation(lengths: Tensor, real: Tensor) -> Tensor:
    """(batch, head) standard deviation of the lengths over their mean; NaN where all are 0."""
    count = real.sum(-1)[:, None]
    mean = (lengths * real.unsqueeze(1)).sum(-1) / count
    variance = ((lengths - mean.unsqueeze(-1)).square() * real.unsqueeze(1)).sum(-1) / count
    return variance.sqrt() / mean


@analysis(
    question="What does each head take over from the pieces it looks at?",
    special="sources and targets, but not in measures that say `ordinary`",
    cites=("kobayashi2020",),
    sites=(NORMS,),
    version=3,
)
def norms(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Share of the norms ‖α f(x)‖ that each kind of piece adds to a head's output: 0 nothing, 1 all of it.

    α is the attention weight and f(x) the piece's value vector taken through the head's part of the output projection;
    b_V is in, b_O is not. Norms are summed over the targets of a kind and divided by the row's sum; the mean is over
    rows, then over sentences that have such a piece. The paper sums norms without dividing; the share can be read
    beside `weights alone`, the share of attention: what it would be if all f(x) were equally long. `order of weights
    and norms` is the rank correlation of α and ‖α f(x)‖ along a row (1 where lengths do not matter), `order of
    attention received and length` that of the attention a piece receives and ‖f(x)‖ over the pieces of a sentence
    (below 0: what is looked at most has the shortest vectors), `spread of lengths` the variation of ‖f(x)‖. The same
    with `ordinary` leaves special tokens out as sources and targets: most of it is often theirs alone.
    """
    measures = means_by_label(recording.stacked(NORMS), NORMS, seed)
    shown = {name: measures[name] for name in UNITS if measures[name].n.any()}
    grid = (recording.encoder.layers, recording.encoder.heads)
    baselines = {
        chance: {share: measures[f"{chance}, {share}"] for share in ALL_SHARES if share in shown}
        for chance in (WEIGHTS, EVEN)
    }
    by_rule = {RANKS[0]: (WEIGHTS, 1.0), RANKS[1]: ("no relation", 0.0), SPREAD: (WEIGHTS, 0.0)}
    for name in shown:
        if name not in ALL_SHARES:
            chance, value = by_rule[name.removesuffix(", ordinary")]
            baselines.setdefault(chance, {})[name] = Estimates.exact(np.full(grid, value))
    if randomised is not None:
        fresh = means_by_label(randomised.stacked(NORMS), NORMS, seed)
        baselines["random weights"] = {name: fresh[name] for name in shown}
    return HeadGrid(measures=shown, baselines=baselines, units={name: UNITS[name] for name in shown})
