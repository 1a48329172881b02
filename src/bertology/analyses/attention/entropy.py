"""Entropy of each head's attention (Clark et al. 2019, section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import mean_grid
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid
from bertology.statistics.batch_features import MIN_MASS
from bertology.statistics.pairs import rows_only
from bertology.statistics.rows import row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

MEASURES = ("entropy", "entropy of [CLS]", "entropy (no special tokens)")


class _RowWeights(NamedTuple):
    """Weights of the rows of a batch, the same in every layer.

    `weights` is (batch, token, 2): the weight of each row in the mean over all rows and in that over the [CLS] row, NaN
    if an input has none. `non_special` is (batch, 1, token).
    """

    weights: Tensor
    non_special: Tensor


def _prepare(batch: TokenBatch) -> _RowWeights:
    rows = torch.stack([batch.token_mask, batch.token_mask & (batch.special_kinds == SpecialToken.CLS)], dim=-1).float()
    return _RowWeights(rows / rows.sum(1, keepdim=True), batch.non_special_mask[:, None])


@reduction(
    "attention.entropy",
    axes=("rows",),
    labels=MEASURES,
    description="mean entropy of attention rows in nats: all rows, the [CLS] row, rows and targets without special "
    "tokens",
    prepare=_prepare,
    needs=rows_only,
)
def entropy_site(layer: LayerActivations, batch: TokenBatch, row_weights: _RowWeights) -> Tensor:
    """(batch, head, 3) mean entropies; NaN if a sentence has no such row."""
    rows = row_statistics(layer, batch)
    # With p = a / s over the non-special targets and s their mass, H(p) = (sum of -a ln a) / s + ln s.
    mass = rows.non_special_mass
    mask = (mass > MIN_MASS) & row_weights.non_special
    renormalised = (rows.non_special_entropy / mass + mass.log()).masked_fill_(~mask, 0.0)
    means = rows.entropy @ row_weights.weights.to(mass.dtype)
    return torch.cat([means, (renormalised.sum(-1) / mask.sum(-1)).unsqueeze(-1)], dim=-1)


@analysis(
    question="How broad is each head's attention, measured by its entropy?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens).",
    citations=("clark2019",),
    sites=(entropy_site,),
    version=2,
)
def entropy(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Entropy of each head's attention in nats: 0 for one target, log n for uniform attention over n tokens.

    The mean over the rows of an attention pattern, then over sentences, which all have the same weight. `entropy of
    [CLS]` is that of the [CLS] row; `entropy (no special tokens)` excludes special tokens as sources and, with
    renormalised rows, as targets (rows without attention left are skipped). The released code of Clark et al. smooths
    each row with 0.0001 of the uniform distribution; here it is exact.
    """
    return mean_grid(recording, randomised, entropy_site, units="nats, 0 to log n", seed=seed)
