"""Mixing ratio of each layer's attention block (Kobayashi et al. 2020, 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.attention.norms import (
    ALL_NORM_SHARES,
    NO_SPECIAL,
    NORM_SHARES,
    NORM_UNIT,
    PUNCTUATION_SHARE,
    WEIGHTS_ONLY,
)
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, label_means, measures_and_baselines
from bertology.estimates.estimate import Estimates
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import LayerCurve
from bertology.statistics.batch_features import mass_by_kind_with_non_special, token_kinds
from bertology.statistics.transformed_values import post_attention_and_values, transformed_values
from bertology.statistics.visibility import visibility_mask

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations, PostAttention
    from bertology.encoder.token_batch import TokenBatch

RATIOS = ("mixing ratio", "mixing ratio (no LayerNorm)", "mixing ratio (attention only)")
MEASURES = (*RATIOS, *NORM_SHARES, f"{RATIOS[0]}{NO_SPECIAL}", PUNCTUATION_SHARE)
ROLLOUT_ASSUMPTION = "rollout assumption (0.5)"


@reduction(
    "attention.mixing",
    axes=("measure",),
    labels=(
        *MEASURES,
        *(f"{UNIFORM_ATTENTION}, {name}" for name in MEASURES),
        *(f"{WEIGHTS_ONLY}, {name}" for name in ALL_NORM_SHARES),
    ),
    description="mixing ratio of each layer's attention block (head axis of length 1)",
    prepare=token_kinds,
    needs_values=True,
    version=4,
)
def mixing_site(layer: LayerActivations, batch: TokenBatch, kinds: Tensor) -> Tensor:
    """(batch, 1, measure): mixing ratios and norm shares, the same for uniform attention, and attention shares."""
    post_attention, values = post_attention_and_values(layer)
    products = _inner_products(transformed_values(layer))
    attention = layer.attention.float()
    visible = visibility_mask(layer, batch).float()
    uniform = visible / visible.sum(-1, keepdim=True).clamp(min=1)
    columns: list[Tensor] = []
    for weights in (attention, uniform):
        shares = mass_by_kind_with_non_special(_summed_norms(weights, products), kinds, batch)
        non_special = weights * batch.non_special_mask[:, None, None, :]
        columns += [
            _mixing_ratios(weights, values, post_attention, batch.token_mask),
            shares[..., : len(NORM_SHARES)],
            _mixing_ratios(non_special, values, post_attention, batch.non_special_mask)[..., :1],
            shares[..., len(NORM_SHARES) :],
        ]
    return torch.cat([*columns, mass_by_kind_with_non_special(attention.mean(1, keepdim=True), kinds, batch)], -1)


def _mixing_ratios(weights: Tensor, values: Tensor, post_attention: PostAttention, token_mask: Tensor) -> Tensor:
    """(batch, 1, 3): with residual and LayerNorm, with the residual, and of attention only; averaged over tokens."""
    from_itself = _project_outputs(weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) * values, post_attention)
    mixed = _project_outputs(weights.tril(-1) @ values + weights.triu(1) @ values, post_attention)
    preserved = from_itself + post_attention.residual.float()
    pairs = (
        (_apply_layer_norm(post_attention, mixed), _apply_layer_norm(post_attention, preserved)),
        (mixed, preserved),
        (mixed, from_itself),
    )
    norms = [(first.norm(dim=-1), second.norm(dim=-1)) for first, second in pairs]
    ratios = torch.stack([first / (first + second) for first, second in norms], -1)
    mask = token_mask.unsqueeze(-1) & ratios.isfinite()
    return (ratios.where(mask, 0).sum(1) / mask.sum(1)).unsqueeze(1)


def _project_outputs(outputs: Tensor, post_attention: PostAttention) -> Tensor:
    """(batch, token, width): the (batch, head, token, size) outputs of all heads after the output projection."""
    return outputs.transpose(1, 2).flatten(2) @ post_attention.output_weight.float()


def _apply_layer_norm(post_attention: PostAttention, vectors: Tensor) -> Tensor:
    """The linear part of the LayerNorm without its divisor, which is the same for all summands."""
    if post_attention.layer_norm is None:
        return vectors
    return (vectors - vectors.mean(-1, keepdim=True)) * post_attention.layer_norm.weight.float()


def _inner_products(vectors: Tensor) -> Tensor:
    """(batch, token, head, head): inner products of the heads' f(x) of each token."""
    stacked = vectors.transpose(1, 2)
    return stacked @ stacked.transpose(-1, -2)


def _summed_norms(weights: Tensor, products: Tensor) -> Tensor:
    """(batch, 1, from, to): ‖Σ over heads of α f(x)‖ from inner products, without an n x n x width tensor."""
    by_target = weights.permute(0, 3, 2, 1)
    squares = ((by_target @ products) * by_target).sum(-1)
    return squares.clamp(min=0).sqrt().transpose(1, 2).unsqueeze(1)


@analysis(
    question="How much of a token's state after the attention block comes from other tokens rather than from itself?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens).",
    citations=("kobayashi2020", "kobayashi2021"),
    sites=(mixing_site,),
    version=4,
)
def mixing_ratio(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> LayerCurve:
    """Mixing ratio of each layer's attention block: 0 a token keeps only its own state, 1 all comes from other tokens.

    A state after attention is a sum of vectors: Σ α f(x) of the other tokens (mixed), and α f(x) of the token itself
    plus the residual (preserved). The ratio is ‖mixed‖ / (‖mixed‖ + ‖preserved‖), both after the linear part of the
    LayerNorm, averaged over tokens and then over sentences; biases after the values are excluded. In pre-norm models no
    LayerNorm follows. The other two ratios exclude the LayerNorm, and the LayerNorm and the residual. `norm share of X`
    is the share of ‖Σ over heads of α f(x)‖ by target, comparable with `attention weights only`, the mean attention of
    the heads; sentences without such a token are skipped. Measures marked (no special tokens) analyse only non-special
    tokens, and only other non-special tokens are mixed in. Rollout assumes a ratio of 0.5.
    """
    values = recording.stack(mixing_site)[:, :, 0]
    names_by_baseline = {UNIFORM_ATTENTION: MEASURES, WEIGHTS_ONLY: ALL_NORM_SHARES}
    measures, baselines = measures_and_baselines(values, mixing_site, MEASURES, names_by_baseline, seed)
    baselines[ROLLOUT_ASSUMPTION] = {RATIOS[0]: Estimates.exact(np.full(recording.encoder.layers, 0.5))}
    if randomised is not None:
        untrained = label_means(randomised.stack(mixing_site)[:, :, 0], mixing_site, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in measures}
    units = {name: NORM_UNIT if name in ALL_NORM_SHARES else "ratio, 0 to 1" for name in measures}
    return LayerCurve(measures=measures, baselines=baselines, units=units, first_layer=1)
