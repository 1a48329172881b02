"""Attention rollout: contributions of input tokens to a hidden state, through all layers (Abnar & Zuidema 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, target_name
from bertology.arrays import Array
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.lazy import torch
from bertology.number_ranges import PROPORTION
from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import LayerCurve
from bertology.statistics.rollout_targets import (
    EFFECTIVE_TOKENS,
    MEASURES,
    SOURCES,
    TARGETS,
    SourceTokens,
    TargetMasks,
    mass_by_target,
    target_masks,
    uniform_like,
)

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

RAW_ATTENTION = "raw attention"
VARIANTS = ("rollout", RAW_ATTENTION, UNIFORM_ATTENTION)
LAYER_1_BOUND = "limited by layer 1"
UNITS = {EFFECTIVE_TOKENS: "proportion of tokens, 1/n to 1", LAYER_1_BOUND: "proportion of input tokens, 0 to 1"}
"""Units of the measures that are no shares."""
ResidualWeightOption = Annotated[float, PROPORTION, "Weight of the residual connection in each layer, 0 to 1."]
HeadFusionOption = Annotated[Fusion, "How the heads of a layer are combined: `mean` or `max`."]


@dataclass
class _RolloutState:
    """(batch, from, to) rollouts of the model and of uniform attention, updated layer by layer."""

    targets: TargetMasks
    model: AttentionRollout = field(default_factory=AttentionRollout)
    uniform: AttentionRollout = field(default_factory=AttentionRollout)


@cache
def rollout_site(residual_weight: float = 0.5, head_fusion: Fusion = "mean") -> ReducedSite:
    """The site with the rollout of each layer by target, that of uniform attention, and the layer's raw attention.

    Layers come in order, so that one product is carried along and no attention outlives its layer.
    """

    def prepare(batch: TokenBatch) -> _RolloutState:
        return _RolloutState(target_masks(batch))

    def reduce(layer: LayerActivations, batch: TokenBatch, state: _RolloutState) -> Tensor:
        attention = layer.attention.float()
        uniform = uniform_like(attention, batch)
        variants = (
            state.model.add(residual_attention(attention, head_fusion, residual_weight)),
            residual_attention(attention, head_fusion, 0.0),
            state.uniform.add(residual_attention(uniform, "mean", residual_weight)),
        )
        return torch.stack([mass_by_target(weights, state.targets) for weights in variants], 1).unsqueeze(1)

    return ReducedSite(
        f"attention.rollout{option_suffix(residual_weight, head_fusion)}",
        ("variant", "source", "measure"),
        "attention rollout from each layer to the input, by target (head axis of length 1)",
        reduce,
        labels=MEASURES,
        prepare=prepare,
        version=2,
    )


def option_suffix(residual_weight: float, head_fusion: Fusion) -> str:
    """Options that are not the default, as part of the name of a site."""
    weight = f"{residual_weight:g}".replace(".", "_").replace("-", "_")
    residual = "" if residual_weight == 0.5 else f".residual_{weight}"
    return residual + ("" if head_fusion == "mean" else f".{head_fusion}")


def target_curve(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    variants: tuple[str, ...],
    source: SourceTokens,
    seed: int,
) -> LayerCurve:
    """The first variant of the site by target, such as `rollout to [SEP]`; the others are its baselines.

    The site holds (variant, source, measure) per layer; measures after `MEASURES` are proportions and
    need not exist for every variant.
    """
    values = recording.stack(site)[:, :, 0, :, SOURCES.index(source)]
    if not np.isfinite(values[:, :, 0, : len(MEASURES)]).any():
        raise Refusal(
            "No input contains [CLS]" if source == "cls" else "No input contains a non-special token",
            "inputs with such a token",
            "Use --source all",
        )

    def estimate(by_measure: Array) -> dict[str, Estimates]:
        estimates = bootstrap_mean(by_measure[..., : len(MEASURES)], seed=seed).by_name(MEASURES)
        for index, label in enumerate(site.labels[len(MEASURES) :], len(MEASURES)):
            estimates[label] = exact_where_unanimous(bootstrap_mean(by_measure[..., index], seed=seed))
        return estimates

    by_variant = {name: estimate(values[:, :, index]) for index, name in enumerate(variants)}
    measures = by_variant.pop(variants[0])
    if randomised is not None:
        by_variant[UNTRAINED_MODEL] = estimate(randomised.stack(site)[:, :, 0, 0, SOURCES.index(source)])
    names = {
        label: f"{variants[0]} to {target_name(label)}" if label in TARGETS else label
        for label in site.labels
        if measures[label].n.any()
    }
    return LayerCurve(
        measures={name: measures[label] for label, name in names.items()},
        baselines={
            variant: {name: estimates[label] for label, name in names.items() if estimates[label].n.any()}
            for variant, estimates in by_variant.items()
        },
        units={name: UNITS.get(label, "share of the total, 0 to 1") for label, name in names.items()},
        first_layer=1,
    )


@analysis(
    question="How much does each input token contribute to a hidden state, by attention rollout?",
    special_tokens="Special tokens: included (--source non-special removes them and renormalises).",
    citations=("abnar2020",),
    sites=lambda options: (rollout_site(options["residual_weight"], options["head_fusion"]),),
    version=2,
)
def rollout(
    recording: Recording,
    randomised: Recording | None,
    *,
    source: Annotated[
        SourceTokens, "Whose hidden state is traced: `cls`, or the mean over `all` or `non-special` tokens."
    ] = "cls",
    residual_weight: ResidualWeightOption = 0.5,
    head_fusion: HeadFusionOption = "mean",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> LayerCurve:
    """Share of a hidden state's rollout that falls on each kind of input token: 0 none, 1 all; the five kinds sum to 1.

    A layer is (1 - r) A + r I, where A is the mean of its heads and r the weight of the residual connection; the
    rollout from layer l is the product of layers l to 1. A token counts as the first kind it matches: the token itself,
    [CLS], [SEP], a neighbour, other. `effective number of tokens (of n)` is e to the entropy, over n. Means are over
    the sources of a sentence, then over sentences. `raw attention` is A of that layer alone; `uniform attention` is the
    rollout of heads with uniform attention. The weight 0.5 is Abnar & Zuidema's choice, not a measurement:
    `attention/mixing_ratio` measures it. Values, feed-forward layers and LayerNorm are ignored, and the product of many
    layers approaches one distribution whatever the model: compare it with uniform attention and the untrained model.
    """
    return target_curve(recording, randomised, rollout_site(residual_weight, head_fusion), VARIANTS, source, seed)
