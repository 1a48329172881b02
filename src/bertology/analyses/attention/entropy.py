"""How widely does each head spread its attention (clark2019, section 3.3)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bertology.analyses.declaration import analysis
from bertology.analyses.head_measures import head_grid
from bertology.encoder.pieces import Special
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

MEASURES = ("all", "cls", "ordinary")


LEAST_SHARE = 1e-6
"""A row that puts less than this on ordinary pieces has no distribution over them to speak of, and does not count."""


def _rows(frame: Frame) -> Tensor:
    """(batch, piece, 3): which rows count for each measure."""
    import torch

    first = frame.real & (frame.special == Special.CLS)
    return torch.stack([frame.real, first, frame.ordinary], dim=-1).float()


@reduction(
    "attention.entropy",
    axes=("rows",),
    labels=MEASURES,
    about="mean entropy of the rows of a map, in nats: all rows, the [CLS] row, ordinary rows without special targets",
    prepare=_rows,
)
def ENTROPY(layer: LayerActivations, frame: Frame, rows: Tensor) -> Tensor:
    """(batch, head, 3) mean entropies; NaN where a sentence has no such row."""
    import torch

    maps = layer.attention
    ordinary = frame.ordinary.to(maps.dtype)
    targets = torch.stack([torch.ones_like(ordinary), ordinary], dim=-1).unsqueeze(1)
    tiny = torch.finfo(maps.dtype).tiny
    summed = -(maps * maps.clamp(min=tiny).log()) @ targets
    # With p = a / s over the ordinary targets and s their share, H(p) = (sum of -a ln a) / s + ln s.
    share = (maps @ targets[..., 1:]).squeeze(-1)
    defined = share > LEAST_SHARE
    renormalised = (summed[..., 1] / share + share.log()).masked_fill(~defined, 0.0)
    values = torch.stack([summed[..., 0], summed[..., 0], renormalised], dim=-1)
    counted = rows.unsqueeze(1).expand(-1, maps.shape[1], -1, -1).clone()
    counted[..., 2] *= defined
    return (values * counted).sum(2) / counted.sum(2)


@analysis(
    question="How widely does each head spread its attention?",
    special="`all` and `cls` include special tokens; `ordinary` drops them as sources and, renormalised, as targets",
    cites=("clark2019",),
    sites=(ENTROPY,),
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
