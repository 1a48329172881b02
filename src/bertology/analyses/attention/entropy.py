"""How widely does each head spread its attention (clark2019, section 3.3)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from bertology.analyses.declaration import analysis
from bertology.encoder.pieces import Special
from bertology.measures.attention.head_measures import head_grid
from bertology.measures.attention.special_tokens import LEAST_SHARE
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.recording.wanted import rows_alone
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

MEASURES = ("all", "cls", "ordinary")


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    `weights` is (batch, piece, 2): the part of each row in the mean over all rows and over the [CLS] row, NaN where an
    entry has none. `ordinary` is (batch, 1, piece).
    """

    weights: Tensor
    ordinary: Tensor


def _prepare(frame: Frame) -> _Prepared:
    import torch

    rows = torch.stack([frame.real, frame.real & (frame.special == Special.CLS)], dim=-1).float()
    return _Prepared(rows / rows.sum(1, keepdim=True), frame.ordinary[:, None])


@reduction(
    "attention.entropy",
    axes=("rows",),
    labels=MEASURES,
    about="mean entropy of the rows of a map, in nats: all rows, the [CLS] row, ordinary rows without special targets",
    prepare=_prepare,
    wants=rows_alone,
)
def ENTROPY(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 3) mean entropies; NaN where a sentence has no such row."""
    import torch

    from bertology.recording.rows import rows_of

    rows = rows_of(layer, frame)
    # With p = a / s over the ordinary targets and s their share, H(p) = (sum of -a ln a) / s + ln s.
    share = rows.ordinary
    counted = (share > LEAST_SHARE) & prepared.ordinary
    renormalised = (rows.ordinary_information / share + share.log()).masked_fill_(~counted, 0.0)
    means = rows.information @ prepared.weights.to(share.dtype)
    return torch.cat([means, (renormalised.sum(-1) / counted.sum(-1)).unsqueeze(-1)], dim=-1)


@analysis(
    question="How widely does each head spread its attention?",
    special="`all` and `cls` include special tokens; `ordinary` drops them as sources and, renormalised, as targets",
    cites=("clark2019",),
    sites=(ENTROPY,),
    version=2,
)
def entropy(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Entropy of each head's attention in nats: 0 looks at one piece, log n at all n pieces alike.

    The mean over the rows of a map, then over sentences, each counting alike. `cls` is the row of the first token,
    `ordinary` the rows of ordinary pieces with special targets left out (rows with nothing left do not count). The
    released code of Clark et al. smooths each row with 0.0001 of the uniform distribution; here it is exact.
    """
    return head_grid(recording, randomised, ENTROPY, units="nats, 0 to log n", seed=seed)
