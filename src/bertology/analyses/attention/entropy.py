"""How widely does each head spread its attention (clark2019, section 3.3)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from bertology.analyses.declaration import analysis
from bertology.encoder.pieces import Special
from bertology.measures.attention.head_measures import head_grid
from bertology.measures.attention.special_tokens import LEAST_SHARE
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.stretches import Stretches

MEASURES = ("all", "cls", "ordinary")

CELLS_AT_ONCE = 2**18
"""How many attention weights are taken at once: a megabyte of them, which a processor's cache holds."""


class _Prepared(NamedTuple):
    """What of a batch is the same in every layer.

    `weights` is (batch, piece, 2): the part of each row in the mean over all rows and over the [CLS] row, NaN where an
    entry has none. `ordinary` is (batch, 1, piece).
    """

    weights: Tensor
    ordinary: Tensor
    stretches: tuple[Stretches, ...]


def _prepare(frame: Frame) -> _Prepared:
    import torch

    from bertology.recording.stretches import stretches_of

    rows = torch.stack([frame.real, frame.real & (frame.special == Special.CLS)], dim=-1).float()
    return _Prepared(rows / rows.sum(1, keepdim=True), frame.ordinary[:, None], stretches_of(frame))


@reduction(
    "attention.entropy",
    axes=("rows",),
    labels=MEASURES,
    about="mean entropy of the rows of a map, in nats: all rows, the [CLS] row, ordinary rows without special targets",
    prepare=_prepare,
)
def ENTROPY(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 3) mean entropies; NaN where a sentence has no such row."""
    import torch

    from bertology.recording.stretches import ordinary_sum

    maps = layer.attention
    everywhere, ordinary = _sums(maps, prepared.stretches)
    # With p = a / s over the ordinary targets and s their share, H(p) = (sum of -a ln a) / s + ln s.
    share = ordinary_sum(maps, prepared.stretches)
    counted = (share > LEAST_SHARE) & prepared.ordinary
    renormalised = ordinary.div_(share).add_(share.log()).masked_fill_(~counted, 0.0)
    means = everywhere @ prepared.weights.to(maps.dtype)
    return torch.cat([means, (renormalised.sum(-1) / counted.sum(-1)).unsqueeze(-1)], dim=-1)


def _sums(maps: Tensor, stretches: tuple[Stretches, ...]) -> tuple[Tensor, Tensor]:
    """(batch, head, from): the sums of -a ln a over all targets and over ordinary ones."""
    import torch

    from bertology.maths.logarithm import log_in_place
    from bertology.recording.stretches import ordinary_sum

    # A few heads at a time, over one another: on a processor the products stay in its cache.
    entries, heads, size, _ = maps.shape
    at_once = max(1, min(heads, CELLS_AT_ONCE // (entries * size * size)))
    space = torch.empty((entries, at_once, size, size), dtype=maps.dtype, device=maps.device)
    everywhere, ordinary = maps.new_empty(maps.shape[:3]), maps.new_empty(maps.shape[:3])
    for start in range(0, heads, at_once):
        some = slice(start, start + at_once)
        own = maps[:, some]
        products = space[:, : own.shape[1]]
        torch.clamp(own, min=torch.finfo(maps.dtype).tiny, out=products)
        log_in_place(products).mul_(own)
        everywhere[:, some] = products.sum(-1)
        ordinary[:, some] = ordinary_sum(products, stretches)
    return everywhere.neg_(), ordinary.neg_()


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
