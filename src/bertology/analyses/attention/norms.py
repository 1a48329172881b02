"""Norm-weighted attention: attention weights times the norms of transformed values (Kobayashi et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import (
    UNIFORM_ATTENTION,
    UNTRAINED_MODEL,
    label_means,
    measures_and_baselines,
    target_name,
)
from bertology.estimates.estimate import Estimates
from bertology.lazy import torch
from bertology.numerics.rank_correlation import spearman
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid
from bertology.statistics.batch_features import TOKEN_KINDS, mass_by_kind_with_non_special, token_kinds
from bertology.statistics.transformed_values import transformed_values_per_head
from bertology.statistics.visibility import visibility_mask

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

NO_SPECIAL = " (no special tokens)"
NORM_SHARES = tuple(f"norm share of {target_name(kind)}" for kind in TOKEN_KINDS)
PUNCTUATION_SHARE = f"norm share of punctuation{NO_SPECIAL}"
ALL_NORM_SHARES = (*NORM_SHARES, PUNCTUATION_SHARE)
WEIGHT_CORRELATION = "rank correlation of weight and weighted norm"
RECEIVED_CORRELATION = "rank correlation of attention received and value norm"
NORM_VARIATION = "variation of value norms"
_NORM_RELATIONS = {
    WEIGHT_CORRELATION: "Spearman correlation, -1 to 1",
    RECEIVED_CORRELATION: "Spearman correlation, -1 to 1",
    NORM_VARIATION: "coefficient of variation, at least 0",
}
NORM_UNIT = "share of the norms, 0 to 1"
UNITS = (
    dict.fromkeys(NORM_SHARES, NORM_UNIT)
    | _NORM_RELATIONS
    | {PUNCTUATION_SHARE: NORM_UNIT}
    | {f"{name}{NO_SPECIAL}": unit for name, unit in _NORM_RELATIONS.items()}
)
WEIGHTS_ONLY = "attention weights only"
TIE_TOLERANCE = 1e-4
"""Tokens whose attention received differs by less than this fraction of the mean are tied."""


@reduction(
    "attention.norms",
    axes=("measure",),
    labels=(
        *UNITS,
        *(f"{baseline}, {name}" for baseline in (WEIGHTS_ONLY, UNIFORM_ATTENTION) for name in ALL_NORM_SHARES),
    ),
    description="share of the summed norms of attention x f(x) by target, and correlations of norms and weights",
    prepare=token_kinds,
    needs_values=True,
    version=4,
)
def norms_site(layer: LayerActivations, batch: TokenBatch, kinds: Tensor) -> Tensor:
    """(batch, head, measure); shares also with equal norms of all f(x), and with uniform attention."""
    weights = layer.attention.float()
    value_norms = transformed_values_per_head(layer).norm(dim=-1)
    norms = weights * value_norms.unsqueeze(2)
    visible = visibility_mask(layer, batch)
    uniform_norms = visible * value_norms.unsqueeze(2)
    model, weights_only, uniform = (
        mass_by_kind_with_non_special(values, kinds, batch) for values in (norms, weights, uniform_norms)
    )
    relations, non_special_relations = (
        _norm_relations(weights, norms, value_norms, visible, mask)
        for mask in (batch.token_mask, batch.non_special_mask)
    )
    n_kinds = len(NORM_SHARES)
    return torch.cat(
        [model[..., :n_kinds], relations, model[..., n_kinds:], non_special_relations, weights_only, uniform], -1
    )


def _norm_relations(weights: Tensor, norms: Tensor, value_norms: Tensor, visible: Tensor, mask: Tensor) -> Tensor:
    """(batch, head, 3): both correlations and the variation, with sources and targets in the mask."""
    visible = visible & mask[:, None, :, None] & mask[:, None, None, :]
    received = (weights * visible).sum(2) / visible.sum(2).clamp(min=1)
    relations = [
        spearman(weights, norms, visible).nanmean(-1),
        spearman(received, value_norms, mask.unsqueeze(1).expand_as(value_norms), tie_tolerance=TIE_TOLERANCE),
        _variation(value_norms, mask),
    ]
    return torch.stack(relations, -1)


def _variation(value_norms: Tensor, mask: Tensor) -> Tensor:
    """(batch, head) standard deviation of the norms over their mean; NaN if all are 0."""
    count = mask.sum(-1)[:, None]
    mean = (value_norms * mask.unsqueeze(1)).sum(-1) / count
    variance = ((value_norms - mean.unsqueeze(-1)).square() * mask.unsqueeze(1)).sum(-1) / count
    return variance.sqrt() / mean


@analysis(
    question="Which tokens contribute to each head's output once attention weights are multiplied by the norms of the "
    "value vectors?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens).",
    citations=("kobayashi2020",),
    sites=(norms_site,),
    version=4,
)
def norms(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Share of the norms ‖α f(x)‖ that each kind of token contributes to a head's output: 0 none, 1 all.

    α is the attention weight and f(x) the token's value vector after the head's part of the output projection, with b_V
    and without b_O. Norms are summed over the targets of a kind and divided by the sum of the row; the mean is over
    rows, then over sentences with such a token. The paper sums norms without dividing; the share is comparable with
    `attention weights only`, the share of attention, which equals it if all f(x) have the same norm. `rank correlation
    of weight and weighted norm` is that of α and ‖α f(x)‖ along a row (1 if norms do not matter), `rank correlation of
    attention received and value norm` that over the tokens of a sentence (below 0: the most attended tokens have the
    smallest vectors), `variation of value norms` the coefficient of variation of ‖f(x)‖. Measures marked (no special
    tokens) exclude special tokens as sources and targets: they often determine the result.
    """
    names_by_baseline = {WEIGHTS_ONLY: ALL_NORM_SHARES, UNIFORM_ATTENTION: ALL_NORM_SHARES}
    values = recording.stack(norms_site)
    measures, baselines = measures_and_baselines(values, norms_site, UNITS, names_by_baseline, seed)
    expected = {
        WEIGHT_CORRELATION: (WEIGHTS_ONLY, 1.0),
        RECEIVED_CORRELATION: ("zero", 0.0),
        NORM_VARIATION: (WEIGHTS_ONLY, 0.0),
    }
    for relation, (baseline, value) in expected.items():
        for name in (relation, f"{relation}{NO_SPECIAL}"):
            if name in measures:
                exact = Estimates.exact(np.full(measures[name].shape, value))
                baselines.setdefault(baseline, {})[name] = exact
    if randomised is not None:
        untrained = label_means(randomised.stack(norms_site), norms_site, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in measures}
    return HeadGrid(measures=measures, baselines=baselines, units={name: UNITS[name] for name in measures})
