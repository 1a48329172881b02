"""Attention flow: maximum flow from a hidden state to each input token (Abnar & Zuidema 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.attention.rollout import (
    LAYER_1_BOUND,
    RAW_ATTENTION,
    HeadFusionOption,
    ResidualWeightOption,
    option_suffix,
    target_curve,
)
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION
from bertology.arrays import BoolArray, FloatArray
from bertology.lazy import torch
from bertology.numerics.attention_rollout import AttentionRollout, Fusion, residual_attention
from bertology.numerics.maximum_flow import layered_flows
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import LayerCurve
from bertology.statistics.rollout_targets import (
    MEASURES,
    SOURCES,
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

VARIANTS = ("flow", RAW_ATTENTION, "rollout", UNIFORM_ATTENTION)
BOUND_TOLERANCE = 1e-4


@dataclass
class _FlowState:
    """Edge capacities of all layers so far, of the model and of uniform attention, and the rollout."""

    targets: TargetMasks
    capacities: list[FloatArray] = field(default_factory=list[FloatArray])
    uniform: list[FloatArray] = field(default_factory=list[FloatArray])
    rollout: AttentionRollout = field(default_factory=AttentionRollout)


@cache
def flow_site(residual_weight: float = 0.5, head_fusion: Fusion = "mean", all_sources: bool = False) -> ReducedSite:
    """The site with the flow from each layer to the input by target: from [CLS] only, or from every token.

    The attention of all layers, averaged over heads, is held until the batch is done; a few numbers per layer are kept.
    """

    def prepare(batch: TokenBatch) -> _FlowState:
        return _FlowState(target_masks(batch))

    def reduce(layer: LayerActivations, batch: TokenBatch, state: _FlowState) -> Tensor:
        attention = layer.attention.float()
        weights = residual_attention(attention, head_fusion, residual_weight)
        uniform = residual_attention(uniform_like(attention, batch), "mean", residual_weight)
        state.capacities.append(weights.cpu().double().numpy())
        state.uniform.append(uniform.cpu().double().numpy())
        rows = state.targets.sources[..., SOURCES.index("all" if all_sources else "cls")].cpu().numpy()
        flows, at_bound = _flows_and_bounds(state.capacities, rows, batch)
        uniform_flows, uniform_at_bound = _flows_and_bounds(state.uniform, rows, batch)
        variants = [
            torch.from_numpy(flows),
            residual_attention(attention, head_fusion, 0.0),
            state.rollout.add(weights),
            torch.from_numpy(uniform_flows),
        ]
        means = torch.stack([mass_by_target(variant.to(attention), state.targets) for variant in variants], 1)
        bounds = torch.full_like(means[..., :1], torch.nan)
        for index, flags in ((0, at_bound), (VARIANTS.index(UNIFORM_ATTENTION), uniform_at_bound)):
            bounds[:, index] = _mean_bound(torch.from_numpy(flags).to(attention), state.targets)
        values = torch.cat([means, bounds], -1)
        if not all_sources:
            values[:, :, 1:] = torch.nan
        return values.unsqueeze(1)

    return ReducedSite(
        f"attention.flow{option_suffix(residual_weight, head_fusion)}{'.all_sources' * all_sources}",
        ("variant", "source", "measure"),
        "maximum flow from each layer to the input, by target (head axis of length 1)",
        reduce,
        labels=(*MEASURES, LAYER_1_BOUND),
        prepare=prepare,
    )


def _flows_and_bounds(layers: list[FloatArray], rows: BoolArray, batch: TokenBatch) -> tuple[FloatArray, FloatArray]:
    """(batch, from, to) flows divided by their sum, and (batch, from) the proportion of targets at their bound.

    A flow is at most the capacity that enters its target in layer 1, and at most that leaving its source, which is 1.
    """
    shares, bounds = np.zeros(layers[0].shape), np.zeros(rows.shape)
    for row, length in enumerate(batch.lengths.tolist()):
        capacities = np.stack([layer[row, :length, :length] for layer in layers])
        bound = np.minimum(1.0, capacities[0].sum(0))
        for source in np.flatnonzero(rows[row]):
            flows = _source_flows(capacities, int(source))
            shares[row, source, :length] = flows / flows.sum()
            bounds[row, source] = (flows >= bound - BOUND_TOLERANCE).mean()
    return shares, bounds


def _source_flows(capacities: FloatArray, source: int) -> FloatArray:
    """(target,) flows; under uniform attention, where all tokens are alike, two of them determine all."""
    n_layers, size, _ = capacities.shape
    self_capacity, other_capacity = capacities[0, 0, 0], capacities[0, 0, -1]
    uniform = np.full((size, size), other_capacity)
    np.fill_diagonal(uniform, self_capacity)
    if size < 2 or not np.allclose(capacities, uniform, atol=1e-7):
        return layered_flows(capacities, source)
    to_self, to_other = _uniform_flows(n_layers, size, float(self_capacity), float(other_capacity))
    flows = np.full(size, to_other)
    flows[source] = to_self
    return flows


@lru_cache(maxsize=4096)
def _uniform_flows(n_layers: int, size: int, self_capacity: float, other_capacity: float) -> tuple[float, float]:
    """The flow to the source token itself and to any other token, if every layer has only two capacities."""
    capacities = np.full((n_layers, size, size), other_capacity)
    capacities[:, np.arange(size), np.arange(size)] = self_capacity
    to_self, to_other = layered_flows(capacities, 0, (0, 1))
    return float(to_self), float(to_other)


def _mean_bound(at_bound: Tensor, targets: TargetMasks) -> Tensor:
    """(batch, source, 1) means of (batch, from) values over the rows of each source."""
    rows = targets.sources.to(at_bound.dtype)
    return ((at_bound.unsqueeze(-1) * rows).sum(1) / rows.sum(1)).unsqueeze(-1)


@analysis(
    question="How much does each input token contribute to a hidden state, by maximum flow through the attention "
    "graph?",
    special_tokens="Special tokens: included (--source non-special removes them and renormalises).",
    citations=("abnar2020",),
    sites=lambda options: (flow_site(options["residual_weight"], options["head_fusion"], options["source"] != "cls"),),
    version=2,
)
def flow(
    recording: Recording,
    randomised: Recording | None,
    *,
    source: Annotated[
        SourceTokens, "Whose hidden state is traced: `cls`, or the mean over `all` or `non-special` tokens (slower)."
    ] = "cls",
    residual_weight: ResidualWeightOption = 0.5,
    head_fusion: HeadFusionOption = "mean",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> LayerCurve:
    """Share of a hidden state's attention flow to each kind of input token: 0 none, 1 all; the five kinds sum to 1.

    The flow from a token of layer l to an input token is the maximum flow through the graph of layers l to 1, whose
    edges have the capacities (1 - r) A + r I (see `attention/rollout`); each input token is a separate problem, and the
    flows to all of them are divided by their sum, as in the paper. Kinds of tokens and `effective number of tokens (of
    n)` are those of `attention/rollout`. `limited by layer 1` is the proportion of input tokens whose flow is the
    maximum that layer 1 admits to them (or all that leaves the source): such a flow is the same from every source and
    independent of the layers above. Capacities are rounded to 2^-28. A sentence of 128 tokens takes about a second for
    [CLS] of the last of 12 layers.
    """
    site = flow_site(residual_weight, head_fusion, source != "cls")
    return target_curve(recording, randomised, site, VARIANTS, source, seed)
