"""Integrated gradients of each layer's attention (Sundararajan et al. 2017; Hao et al. 2021)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from annotated_types import Ge, Interval

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.head_grids import (
    ALL_UNMASKED,
    TARGETS,
    UNTRAINED_MODEL,
    LayersOrHeads,
    LayersOrHeadsOption,
    NormaliseOption,
    SpecialTokensOption,
    curve_or_grid,
    importance_shape,
    mean_by_target,
    measure_name,
    source_mask,
    target_classes,
)
from bertology.arrays import Array
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import GatedEncoder, Randomisable
from bertology.encoder.token_batch import TokenBatch
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.lazy import torch
from bertology.recording.gold_targets import gold_targets
from bertology.recording.objectives import build_objective
from bertology.recording.plan import MAX_SAMPLE_SIZE, affordable_sample_size, sample_inputs, token_batches
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.batch_features import SpecialTokens

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.encoder import ModelInputs, Objective

TOTAL = "total attribution of the layer"
QUANTITY = "attribution"
MAX_SECONDS = 240.0
"""What all passes of a sample may take one core, for one model."""


@analysis(
    question="How much does each layer's attention contribute to the loss, by integrated gradients?",
    special_tokens="Special tokens: included (--special-tokens exclude removes them, except in the total). Masked "
    "tokens are a separate kind of target.",
    citations=("sundararajan2017", "hao2021"),
    version=3,
    cost=Cost(150.0),
)
def integrated_gradients(
    recording: Recording,
    randomised: Recording | None,
    encoder: GatedEncoder,
    *,
    integration_steps: Annotated[
        int,
        Interval(ge=1, le=1000),
        "Points of the Gauss-Legendre integration; each needs one backward pass per layer.",
    ] = 8,
    normalise: NormaliseOption = "relative",
    show: LayersOrHeadsOption = "layers",
    special_tokens: SpecialTokensOption = "include",
    sample_size: Annotated[
        int | Literal["auto"],
        Ge(0),
        "Analyse a random sample of this many inputs, each of which needs many passes (0: all); `auto`: at most 60, "
        "fewer of a large model.",
    ] = "auto",
    seed: Annotated[int, "Random seed (sample, bootstrap)."] = 0,
) -> LayerCurve | HeadGrid:
    """Mean |integrated gradient| of attention to a kind of token, relative to all unmasked tokens: 0 none, 1 average.

    A layer's attention A is scaled by t from 0 to 1 while all other layers attend as usual; the attribution of a weight
    α to the objective L is α ∫ ∂L(tA)/∂α dt, with L as in `attention/gradients`. The attributions of all weights of a
    layer sum to L(A) - L(0), shown as `total attribution of the layer`: below 0 if the layer's attention lowers the
    loss (with --show heads: the head's part of that sum). Hao et al. also scale one layer at a time, by a Riemann sum
    of 20 steps. The bias of the values is scaled as well.

    Each layer and step needs a forward and a backward pass. With the default sample size these take one core up to
    about four minutes for a model, and the result says how many inputs that are: 60 for 8 layers of width 256, 10 for
    12 layers of width 768 (measured: 1.6 s for a sentence of 25 tokens, and 24 s for one of 30).
    """
    if sample_size == "auto":
        candidates = sample_inputs(recording, MAX_SAMPLE_SIZE, seed)
        lengths = [len(recording.inputs[index].tokens) for index in candidates]
        # A pass forward and one back for each layer and step; weights have no gradients.
        n_passes = 2 * encoder.layers * integration_steps
        sample_size = affordable_sample_size(encoder, lengths, n_passes, seconds=MAX_SECONDS)
    attribute = partial(
        _attribute, steps=integration_steps, special_tokens=special_tokens, sample_size=sample_size, seed=seed
    )
    values, totals = attribute(recording, encoder)
    untrained_values = untrained_totals = None
    if randomised is not None:
        untrained = cast("Randomisable", encoder).randomised(seed=0)
        untrained_values, untrained_totals = attribute(randomised, untrained)
    shape = importance_shape(show, normalise, values, untrained_values, quantity=QUANTITY, unit="objective", seed=seed)
    total = _estimate_totals(totals, show, seed)
    zero = Estimates.exact(np.zeros(total.shape))
    baselines = {**shape.baselines, "zero": {measure_name(QUANTITY, ALL_UNMASKED): zero, TOTAL: zero}}
    if untrained_totals is not None:
        untrained_total = _estimate_totals(untrained_totals, show, seed)
        baselines[UNTRAINED_MODEL] = {**baselines[UNTRAINED_MODEL], TOTAL: untrained_total}
    units = {**shape.units, TOTAL: "change in the objective per sentence"}
    result = curve_or_grid(show, {**shape.measures, TOTAL: total}, baselines, units)
    sample = {"inputs": len(recording), "sampled inputs": len(sample_inputs(recording, sample_size, seed))}
    return result.model_copy(update={"sample": sample})


def _estimate_totals(totals: Array, show: LayersOrHeads, seed: int) -> Estimates:
    return bootstrap_mean(totals if show == "heads" else totals.sum(axis=2), seed=seed)


def _attribute(
    recording: Recording,
    encoder: GatedEncoder,
    *,
    steps: int,
    special_tokens: SpecialTokens,
    sample_size: int,
    seed: int,
) -> tuple[Array, Array]:
    """(sentence, layer, head, target) mean |integrated gradient|, and (sentence, layer, head) signed sums."""
    objective_name, masking_seed = recording.config["objective"], recording.config["seed"]
    gold = gold_targets(encoder, recording.corpus, recording.inputs) if objective_name == "gold" else None
    shape = (len(recording), encoder.layers, encoder.heads)
    values, totals = np.full((*shape, len(TARGETS)), np.nan), np.full(shape, np.nan)
    for indices, batch in token_batches(recording, encoder, sample_size=sample_size, seed=seed):
        inputs, objective = build_objective(encoder, objective_name, batch, masking_seed, gold)
        fed_batch = TokenBatch(batch.inputs, encoder.device, inputs)
        targets = target_classes(fed_batch, special_tokens)
        sources = source_mask(fed_batch, special_tokens)
        pairs = fed_batch.token_mask[:, None, :, None] & fed_batch.token_mask[:, None, None, :]
        for layer in range(encoder.layers):
            attention, attributions = layer_integrated_gradients(encoder, inputs, objective, layer, steps)
            values[indices, layer] = mean_by_target(attributions.abs(), attention, targets, sources).cpu().numpy()
            totals[indices, layer] = (attributions * pairs).sum((-1, -2)).cpu().numpy()
    return values, totals


def layer_integrated_gradients(
    encoder: GatedEncoder, inputs: ModelInputs, objective: Objective, layer: int, integration_steps: int
) -> tuple[Tensor, Tensor]:
    """The attention of one layer and the integrated gradient of each weight, both (batch, head, from, to).

    A head's output is linear in its attention: scaling the output by t scales the attention, and the gradient with
    respect to the unscaled attention is t times the required one.
    """
    points, widths = (array / 2 for array in np.polynomial.legendre.leggauss(integration_steps))
    gradients: list[Tensor] = []
    attention: list[Tensor] = []

    def hook(activations: LayerActivations) -> None:
        if activations.layer == layer:
            assert activations.gradient is not None, "a pass with an objective has gradients"
            gradients.append(activations.gradient.float())
            attention.append(activations.attention.float())

    total: Tensor | None = None
    for point, width in zip(points + 0.5, widths, strict=True):
        scale = torch.ones(encoder.layers, encoder.heads, device=encoder.device)
        scale[layer] = point
        encoder.with_gates(Gates(scale=scale)).forward(inputs, on_layer=hook, objective=objective)
        gradient = gradients.pop() * float(width / point)
        total = gradient if total is None else total + gradient
    assert total is not None, "there is at least one step"
    return attention[-1], attention[-1] * total
