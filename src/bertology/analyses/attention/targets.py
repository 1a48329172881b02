"""What does each head look at: special tokens, punctuation, itself, its neighbours (clark2019, 3.1-3.2)?"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.analyses.head_measures import head_grid
from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

MEASURES = (
    "to [CLS]",
    "to [SEP]",
    "to punctuation",
    "to itself",
    "to previous",
    "to next",
    "to same word",
    "to other",
    "[SEP] to [SEP]",
    "other to [SEP]",
    "to previous, ordinary",
    "to next, ordinary",
)


def _weights(frame: Frame) -> Tensor:
    """(batch, from x to, measure): each measure is the inner product of a map with its column here.

    Row weights make each measure a mean over its source rows, so a column sums a map to a share of its mass.
    """
    import torch

    real = frame.real
    kinds = [frame.special == Special.CLS, frame.special == Special.SEP, punctuation(frame)]
    cls, sep, punct = (kind & real for kind in kinds)
    size = frame.width
    steps = torch.arange(size, device=frame.device)
    offset = steps[None, :] - steps[:, None]
    pair = real[:, :, None] & real[:, None, :]
    same = (frame.word[:, :, None] == frame.word[:, None, :]) & (frame.word >= 0)[:, :, None] & (offset != 0)
    targets = {
        "to [CLS]": cls[:, None, :].expand_as(pair),
        "to [SEP]": sep[:, None, :].expand_as(pair),
        "to punctuation": punct[:, None, :].expand_as(pair),
        "to itself": (offset == 0).expand_as(pair),
        "to previous": (offset == -1).expand_as(pair),
        "to next": (offset == 1).expand_as(pair),
        "to same word": same,
    }
    named = torch.stack(list(targets.values())).any(0)
    columns = [_row_mean(target & pair, real) for target in targets.values()]
    columns.append(_row_mean(~named & pair, real))
    columns.append(_row_mean((sep[:, :, None] & sep[:, None, :]), sep))
    columns.append(_row_mean((~sep[:, :, None] & sep[:, None, :]) & pair, real & ~sep))
    inner = frame.ordinary[:, :, None] & frame.ordinary[:, None, :]
    for step in (-1, 1):
        has = (inner & (offset == step)).any(2)
        columns.append(_row_mean(inner & (offset == step), has))
    return torch.stack(columns, dim=-1).flatten(1, 2)


def _row_mean(chosen: Tensor, rows: Tensor) -> Tensor:
    """(batch, from, to) weights whose inner product with a map is the mean over `rows` of the mass on `chosen`."""
    return chosen.float() / rows.sum(1).float()[:, None, None]


def punctuation(frame: Frame) -> Tensor:
    """(batch, piece): ordinary pieces that consist of punctuation only."""
    return frame.per_piece([_punctuation(entry) for entry in frame.entries])


def _punctuation(entry: Entry) -> NDArray[np.bool_]:
    pieces = entry.pieces
    flags = [
        kind == Special.NONE and _is_punctuation(token.strip("▁Ġ#") or token)
        for token, kind in zip(pieces.tokens, pieces.special, strict=True)
    ]
    return np.array(flags, np.bool_)


def _is_punctuation(token: str) -> bool:
    return bool(token) and all(unicodedata.category(character).startswith("P") for character in token)


@reduction(
    "attention.targets",
    axes=("target",),
    labels=MEASURES,
    about="share of each head's attention by what it falls on, mean over source pieces",
    prepare=_weights,
)
def TARGETS(layer: LayerActivations, frame: Frame, weights: Tensor) -> Tensor:
    """(batch, head, measure) shares; NaN where a sentence has no source piece of that kind."""
    return layer.attention.flatten(2) @ weights.to(layer.attention.dtype)


@analysis(
    question="What does each head look at: special tokens, punctuation, itself, its neighbours?",
    special="special tokens are sources and targets, except in the measures that say `ordinary`",
    cites=("clark2019",),
    sites=(TARGETS,),
)
def targets(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Share of attention by target: 0 none of it, 1 all of it; the mean over source pieces, then over sentences.

    `to other` is what falls on none of the seven kinds before it. The kinds overlap ([SEP] can be the next piece), so
    shares need not sum to 1. `[SEP] to [SEP]` and `other to [SEP]` have only [SEP], or all but [SEP], as sources. The
    `ordinary` measures count only steps between two ordinary pieces, from pieces that have such a neighbour: a head
    that always looks one back scores 1. Clark's released figure swaps the legends of next and previous; here previous
    is the piece before.
    """
    return head_grid(recording, randomised, TARGETS, units="share, 0 to 1", seed=seed)
