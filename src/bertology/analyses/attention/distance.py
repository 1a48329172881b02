"""How far does each head look (vig2019structure, section 4.4)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bertology.analyses.declaration import analysis
from bertology.measures.attention.head_measures import Average, ratio_grid
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.recording.wanted import rows_alone
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

MEASURES = ("pieces", "pieces, ordinary", "words", "words, ordinary")
UNITS = {name: f"{name.split(',')[0]}, 0 itself to n - 1" for name in MEASURES}


def _prepare(frame: Frame) -> Tensor:
    """(batch, piece, 2): what a row counts in pieces and in words."""
    import torch

    return torch.stack([frame.real.float(), frame.word_share], -1)


@reduction(
    "attention.distance",
    axes=("sum_total", "measure"),
    labels=MEASURES,
    about="attention times distance, and the attention, of each head: in pieces and words, with and without special",
    prepare=_prepare,
    wants=rows_alone,
)
def DISTANCE(layer: LayerActivations, frame: Frame, prepared: Tensor) -> Tensor:
    """(batch, head, 2, measure): sums of attention times distance over the sum of attention."""
    import torch

    from bertology.recording.rows import rows_of

    rows = rows_of(layer, frame)
    sums = rows.distances
    everywhere = prepared.sum(1)[:, None].expand(-1, sums.shape[1], -1)
    ordinary = rows.ordinary * frame.ordinary[:, None]
    inside = ordinary @ prepared.to(ordinary.dtype)
    totals = torch.stack([everywhere, inside], -1).flatten(2)
    return torch.stack([sums, totals], 2)


@analysis(
    question="How far does each head look?",
    special="`ordinary` leaves special tokens out as sources and as targets, the other measures keep them",
    cites=("vig2019structure", "clark2019"),
    sites=(DISTANCE,),
    version=2,
)
def distance(
    recording: Recording,
    randomised: Recording | None,
    *,
    average: Annotated[
        Average, "`pooled` weighs every bit of attention alike, as the paper does; `sentences` every sentence"
    ] = "pooled",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Mean distance of what a head attends to, in pieces or words: 0 itself, 1 the neighbours, up to n - 1.

    The sum of attention times distance over the sum of attention. Distance has no sign here; the paper's model sees
    only what is before. In words, attention to a word is the sum over its pieces and attention from it the mean; a
    special token or a piece without a word is a word of its own. Uniform attention over all n pieces has (n² - 1) / 3n.
    """
    return ratio_grid(recording, randomised, DISTANCE, units=UNITS, average=average, seed=seed)
