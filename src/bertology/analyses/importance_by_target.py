"""Importance of attention weights by the kind of token they fall on: from a number per weight to curves or grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from bertology.analyses.head_grids import UNTRAINED_MODEL, target_name
from bertology.arrays import Array
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, bootstrap_ratio
from bertology.lazy import torch
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.batch_features import KINDS_BY_PUNCTUATION, TOKEN_KINDS, Punctuation, SpecialTokens

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

LayersOrHeads = Literal["layers", "heads"]
LayersOrHeadsOption = Annotated[
    LayersOrHeads, "`layers`: one value per layer, averaged over heads; `heads`: one value per head."
]
Normalisation = Literal["relative", "none"]
NormaliseOption = Annotated[
    Normalisation, "`relative`: as a ratio to the mean over all unmasked tokens; `none`: raw values."
]
SpecialTokensOption = Annotated[SpecialTokens, "`include` special tokens, or `exclude` them as sources and targets."]

ALL_UNMASKED = "all unmasked tokens"
TARGETS = (ALL_UNMASKED, *map(target_name, TOKEN_KINDS), "masked tokens")


def target_classes(
    batch: TokenBatch, special_tokens: SpecialTokens = "include", punctuation: Punctuation = "all"
) -> Tensor:
    """(batch, token, target) booleans, in the order of `TARGETS`."""
    unmasked = source_mask(batch, special_tokens) & ~batch.mlm_mask
    kinds = KINDS_BY_PUNCTUATION[punctuation](batch) & unmasked.unsqueeze(-1)
    return torch.cat([unmasked.unsqueeze(-1), kinds, batch.mlm_mask.unsqueeze(-1)], -1)


def source_mask(batch: TokenBatch, special_tokens: SpecialTokens) -> Tensor:
    """(batch, token) booleans: the tokens whose rows count."""
    return batch.token_mask if special_tokens == "include" else batch.non_special_mask


def mean_by_target(values: Tensor, attention: Tensor, targets: Tensor, sources: Tensor) -> Tensor:
    """(batch, head, target) means of (batch, head, from, to) values over the sources and each kind of target.

    Attention weights of exactly 0 (invisible tokens) do not count. NaN if a sentence has no such target.
    """
    mask = ((attention > 0) & sources[:, None, :, None]).to(values.dtype)
    flags = targets.to(values.dtype).unsqueeze(1)
    return ((values * mask) @ flags).sum(2) / (mask @ flags).sum(2)


def importance_shape(
    show: LayersOrHeads,
    normalise: Normalisation,
    values: Array,
    randomised: Array | None,
    *,
    quantity: str,
    unit: str,
    seed: int,
) -> LayerCurve | HeadGrid:
    """Importance by target from (sentence, layer, head, target) values, with its baselines.

    `quantity` is the first word of the measures' names, such as `gradient`.
    """
    measures = _target_estimates(show, normalise, values, quantity, seed)
    measured = {name: estimates for name, estimates in measures.items() if estimates.n.any()}
    if not measured:
        raise Refusal(
            "No input contains a non-special token",
            "inputs with text",
            "Use other texts, or --special-tokens include",
        )
    overall = measure_name(quantity, ALL_UNMASKED)
    average = measures[overall] if normalise == "none" else Estimates.exact(np.ones(measures[overall].shape))
    baselines = {"average unmasked token": {name: average for name in measured if name != overall}}
    if randomised is not None:
        untrained = _target_estimates(show, normalise, randomised, quantity, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in measured}
    units = {
        name: unit if normalise == "none" or name == overall else "ratio, 1: average unmasked token"
        for name in measured
    }
    return curve_or_grid(show, measured, baselines, units)


def measure_name(quantity: str, target: str, normalise: Normalisation = "none") -> str:
    """The name of the measure for a target, such as `gradient for [SEP] (relative)`."""
    return f"{quantity} for {target}" + (" (relative)" if normalise == "relative" else "")


def curve_or_grid(
    show: LayersOrHeads,
    measures: Mapping[str, Estimates],
    baselines: Mapping[str, Mapping[str, Estimates]],
    units: Mapping[str, str],
) -> LayerCurve | HeadGrid:
    """A curve over layers, or a grid of heads."""
    if show == "heads":
        return HeadGrid(measures=measures, baselines=baselines, units=units)
    return LayerCurve(measures=measures, baselines=baselines, units=units, first_layer=1)


def _target_estimates(
    show: LayersOrHeads, normalise: Normalisation, values: Array, quantity: str, seed: int
) -> dict[str, Estimates]:
    shown = values if show == "heads" else values.mean(axis=2)
    estimates = {measure_name(quantity, ALL_UNMASKED): bootstrap_mean(shown[..., 0], seed=seed)}
    for index, target in enumerate(TARGETS[1:], 1):
        name = measure_name(quantity, target, normalise)
        if normalise == "none":
            estimates[name] = bootstrap_mean(shown[..., index], seed=seed)
        else:
            present = np.isfinite(shown[..., index])
            target_sums, all_sums = (np.where(present, shown[..., column], 0.0) for column in (index, 0))
            estimates[name] = bootstrap_ratio(target_sums, all_sums, seed=seed)
    return estimates
