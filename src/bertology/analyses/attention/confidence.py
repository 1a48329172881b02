"""How sure is each head of what it looks at (voita2019, section 4)?"""

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

MEASURES: tuple[str, ...] = ("to ordinary", "ordinary to ordinary", "to any")


@reduction(
    "attention.confidence",
    axes=("sum_total", "measure"),
    labels=MEASURES,
    about="highest weight of each row, summed over rows, and the rows: special tokens as targets or not",
    wants=rows_alone,
)
def CONFIDENCE(layer: LayerActivations, frame: Frame, prepared: None) -> Tensor:
    """(batch, head, 2, measure): sums of the rows' highest weights over the number of rows."""
    import torch

    from bertology.recording.rows import rows_of

    found = rows_of(layer, frame)
    rows = torch.stack([frame.real, frame.ordinary], -1).to(found.peak.dtype)
    sums = torch.cat([found.ordinary_peak @ rows, found.peak @ rows[..., :1]], -1)
    counted = rows.sum(1)
    # Where there is nothing ordinary to look at, there is no row that could be sure of it.
    some = counted[:, 1:] > 0
    totals = torch.cat([counted[:, :1] * some, counted[:, 1:], counted[:, :1]], -1)
    return torch.stack([sums, totals[:, None].expand_as(sums)], 2)


@analysis(
    question="How sure is each head of what it looks at?",
    special="`to ordinary` leaves special tokens out as targets, without renormalising; `to any` keeps them",
    cites=("voita2019",),
    sites=(CONFIDENCE,),
    version=2,
)
def confidence(
    recording: Recording,
    randomised: Recording | None,
    *,
    average: Annotated[
        Average, "`pooled` counts every piece alike, as the paper does; `sentences` every sentence"
    ] = "pooled",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Highest weight in a row of a head's map, the mean over rows: 1/n looks at all n pieces alike, 1 at one piece.

    `to ordinary` is the paper's: the end-of-sentence token, here every special token, does not count as a target, so a
    head that parks all its attention on [SEP] has confidence 0. All pieces are sources; `ordinary to ordinary` has
    only ordinary ones. `to any` lets special tokens be targets.
    """
    units = dict.fromkeys(MEASURES, "weight, 0 to 1")
    return ratio_grid(recording, randomised, CONFIDENCE, units=units, average=average, seed=seed)
