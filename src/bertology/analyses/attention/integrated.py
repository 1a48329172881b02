"""What does each layer's attention add, followed from nothing to what it is (sundararajan2017, hao2021)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import GatedEncoder, Randomisable
from bertology.measures.attention.special_tokens import SpecialTokens
from bertology.measures.attention.weight_importance import (
    ALL,
    TARGETS,
    By,
    Scale,
    mean_by_target,
    shaped,
    shown_by,
    sources_of,
    targets_of,
)
from bertology.measures.passes import frames_of
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import HeadGrid, LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.encoder.encoder import Batch, Objective

TOTAL = "whole map"


@analysis(
    question="What does each layer's attention add, followed from nothing to what it is?",
    special="sources and targets, or neither with --special drop (but for `whole map`); masked pieces are targets of "
    "their own",
    cites=("sundararajan2017", "hao2021"),
)
def integrated(
    recording: Recording,
    randomised: Recording | None,
    encoder: GatedEncoder,
    *,
    steps: Annotated[int, "points along the way (Gauss-Legendre); each costs a backward pass a layer"] = 8,
    scale: Annotated[Scale, "each target as a ratio to all unmasked pieces, or as it is"] = "ratio",
    by: Annotated[By, "a curve over layers (mean over heads), or every head"] = "layer",
    special: Annotated[SpecialTokens, "keep special tokens, or drop them as sources and as targets"] = "keep",
    sentences: Annotated[int, "how many inputs are drawn, each costing many passes; 0 for all"] = 60,
    seed: Annotated[int, "seed of the draw and of the bootstrap over sentences"] = 0,
) -> LayerCurve | HeadGrid:
    """Mean |integrated gradient| of the weights on a target, a ratio to all unmasked pieces: 0 none, 1 as any piece.

    A layer's maps A are scaled by t from 0 to 1, all other layers attending as they do, and α's share of the change
    of the objective L is α ∫ ∂L(tA)/∂α dt; L is that of `attention/importance`. The shares of all weights of a layer
    sum to L(A) - L(0), shown as `whole map`: below 0 where the layer's attention lowers the loss (of a head, by
    `head`: its part of that sum). Hao et al. scale one layer at a time as well, by a Riemann sum of 20 steps. The
    bias of the values is part of what is scaled.
    """
    how = _How(steps, special, sentences, seed)
    found, totals = _attributed(recording, encoder, how)
    fresh = fresh_totals = None
    if randomised is not None:
        fresh, fresh_totals = _attributed(randomised, cast("Randomisable", encoder).randomised(seed=0), how)
    shown = shown_by(by, scale, found, fresh, unit="objective, 0 no effect", seed=seed)
    whole = _whole(totals, by, seed)
    none: dict[str, Estimates] = dict.fromkeys((ALL, TOTAL), Estimates.exact(np.zeros(whole.shape)))
    baselines = {**shown.baselines, "no effect": none}
    if fresh_totals is not None:
        baselines["random weights"] = {**baselines["random weights"], TOTAL: _whole(fresh_totals, by, seed)}
    units = {**shown.units, TOTAL: "change of the objective a sentence"}
    return shaped(by, {**shown.measures, TOTAL: whole}, baselines, units)


def _whole(totals: NDArray[Any], by: By, seed: int) -> Estimates:
    return mean_over_sentences(totals if by == "head" else totals.sum(axis=2), seed=seed)


@dataclass(frozen=True)
class _How:
    steps: int
    special: SpecialTokens
    sentences: int
    seed: int


def _attributed(recording: Recording, encoder: GatedEncoder, how: _How) -> tuple[NDArray[Any], NDArray[Any]]:
    """(sentence, layer, head, target) mean |integrated gradient|, and (sentence, layer, head) sums with their sign."""
    from bertology.recording.frame import Frame
    from bertology.recording.golds import gold_for
    from bertology.recording.objectives import objective_for

    objective_name, masking = recording.policy["objective"], recording.policy["seed"]
    gold = gold_for(encoder, recording.corpus, recording.entries) if objective_name == "gold" else None
    shape = (len(recording), encoder.layers, encoder.heads)
    found, totals = np.full((*shape, len(TARGETS)), np.nan), np.full(shape, np.nan)
    for places, frame in frames_of(recording, encoder, sentences=how.sentences, seed=how.seed):
        fed, objective = objective_for(encoder, objective_name, frame, masking, gold)
        seen = Frame(frame.entries, encoder.device, fed)
        targets, sources = targets_of(seen, how.special), sources_of(seen, how.special)
        pairs = seen.real[:, None, :, None] & seen.real[:, None, None, :]
        for layer in range(encoder.layers):
            attention, shares = integrated_gradients(encoder, fed, objective, layer, how.steps)
            means = mean_by_target(shares.abs(), attention, targets, sources)
            found[places, layer] = means.cpu().numpy()
            totals[places, layer] = (shares * pairs).sum((-1, -2)).cpu().numpy()
    return found, totals


def integrated_gradients(
    encoder: GatedEncoder, fed: Batch, objective: Objective, layer: int, steps: int
) -> tuple[Tensor, Tensor]:
    """The maps of one layer and each weight's integrated gradient: both (batch, head, from, to).

    A head's output is linear in its map: scaling the output by t scales the map, and the gradient that arrives at the
    unscaled map is t times the one wanted.
    """
    import torch

    from bertology.encoder.attend import Gates

    points, widths = (array / 2 for array in np.polynomial.legendre.leggauss(steps))
    slopes: list[Tensor] = []
    maps: list[Tensor] = []

    def see(activations: LayerActivations) -> None:
        if activations.layer == layer:
            assert activations.gradient is not None, "a pass with an objective has gradients"
            slopes.append(activations.gradient.float())
            maps.append(activations.attention.float())

    total: Tensor | None = None
    for point, width in zip(points + 0.5, widths, strict=True):
        gates = torch.ones(encoder.layers, encoder.heads, device=encoder.device)
        gates[layer] = point
        encoder.gated(Gates(scale=gates)).run(fed, on_layer=see, objective=objective)
        slope = slopes.pop() * float(width / point)
        total = slope if total is None else total + slope
    assert total is not None, "there is at least one step"
    return maps[-1], maps[-1] * total
