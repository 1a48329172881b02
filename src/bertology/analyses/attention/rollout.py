"""Attention rollout: contributions of input tokens to a hidden state, through all layers (Abnar & Zuidema 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from bertology.analyses.declaration import Sites, analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, target_name
from bertology.lazy import torch
from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import LayerCurve
from bertology.statistics.rollout_targets import (
    MEASURES,
    TARGETS,
    UNITS,
    SourceTokens,
    TargetMasks,
    check_source_exists,
    mass_by_target,
    target_masks,
    target_mass_estimates,
    uniform_like,
)

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

RAW_ATTENTION = "raw attention"
VARIANTS = ("rollout", RAW_ATTENTION, UNIFORM_ATTENTION)


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


def target_measure_names(quantity: str) -> dict[str, str]:
    """The name of each measure, such as `rollout to [SEP]`, by the label in the site."""
    return {name: f"{quantity} to {target_name(name)}" if name in TARGETS else name for name in MEASURES}


def _sites(options: Mapping[str, Any]) -> Sites:
    return (rollout_site(options["residual_weight"], options["head_fusion"]),)


@analysis(
    question="How much does each input token contribute to a hidden state, by attention rollout?",
    special_tokens="Special tokens: included (--source non-special removes them and renormalises).",
    citations=("abnar2020",),
    sites=_sites,
    version=2,
)
def rollout(
    recording: Recording,
    randomised: Recording | None,
    *,
    source: Annotated[
        SourceTokens, "Whose hidden state is traced: `cls`, or the mean over `all` or `non-special` tokens."
    ] = "cls",
    residual_weight: Annotated[float, "Weight of the residual connection in each layer, 0 to 1."] = 0.5,
    head_fusion: Annotated[Fusion, "How the heads of a layer are combined: `mean` or `max`."] = "mean",
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
    site = rollout_site(residual_weight, head_fusion)
    values = recording.stack(site)[:, :, 0]
    check_source_exists(values[:, :, 0], source, "source")
    by_variant = {name: target_mass_estimates(values[:, :, i], source, seed) for i, name in enumerate(VARIANTS)}
    measured = by_variant["rollout"]
    names = {label: name for label, name in target_measure_names("rollout").items() if measured[label].n.any()}
    baselines = {variant: by_variant[variant] for variant in VARIANTS[1:]}
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = target_mass_estimates(randomised.stack(site)[:, :, 0, 0], source, seed)
    return LayerCurve(
        measures={name: measured[label] for label, name in names.items()},
        baselines={
            baseline: {name: estimates[label] for label, name in names.items()}
            for baseline, estimates in baselines.items()
        },
        units={name: UNITS[label] for label, name in names.items()},
        first_layer=1,
    )
