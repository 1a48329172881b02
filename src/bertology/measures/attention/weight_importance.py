"""Importance of attention weights by what they fall on: from a number for each weight to curves or grids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.measures.attention.special_tokens import SpecialTokens
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences, pooled_over_sentences
from bertology.results.shapes import HeadGrid, LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

Floats = NDArray[np.floating[Any]]
By = Literal["layer", "head"]
Scale = Literal["ratio", "raw"]

ALL = "all unmasked"
TARGETS = (ALL, *KINDS, "masked")


def targets_of(frame: Frame, special: SpecialTokens = "keep") -> Tensor:
    """(batch, piece, target) booleans: all pieces that are not masked, each kind of them, and the masked ones."""
    import torch

    shown = sources_of(frame, special) & ~frame.masked
    kinds = kinds_of(frame) & shown.unsqueeze(-1)
    return torch.cat([shown.unsqueeze(-1), kinds, frame.masked.unsqueeze(-1)], -1)


def sources_of(frame: Frame, special: SpecialTokens) -> Tensor:
    """(batch, piece) booleans: the pieces whose rows count."""
    return frame.real if special == "keep" else frame.ordinary


def mean_by_target(values: Tensor, attention: Tensor, targets: Tensor, sources: Tensor) -> Tensor:
    """(batch, head, target) the mean of (batch, head, from, to) values over the sources and the targets of each kind.

    Weights that are exactly 0 (what a piece cannot see) do not count. NaN where a sentence has no such target.
    """
    counted = ((attention > 0) & sources[:, None, :, None]).to(values.dtype)
    flags = targets.to(values.dtype).unsqueeze(1)
    return ((values * counted) @ flags).sum(2) / (counted @ flags).sum(2)


def shown_by(
    by: By, scale: Scale, values: Floats, randomised: Floats | None, *, unit: str, seed: int
) -> LayerCurve | HeadGrid:
    """Importance by target from (sentence, layer, head, target) values, beside that of any piece and random weights."""
    measures = _estimated(by, scale, values, seed)
    kept = {name: estimates for name, estimates in measures.items() if estimates.n.any()}
    if not kept:
        raise Refusal(
            "No input has a piece that counts", "inputs with ordinary pieces", "Give other texts, or use --special keep"
        )
    baselines = {"any unmasked piece": {name: _any_piece(scale, measures) for name in kept if name != ALL}}
    if randomised is not None:
        fresh = _estimated(by, scale, randomised, seed)
        baselines["random weights"] = {name: fresh[name] for name in kept}
    units = {name: unit if scale == "raw" or name == ALL else "ratio, 1 as any piece" for name in kept}
    return shaped(by, kept, baselines, units)


def shaped(
    by: By,
    measures: Mapping[str, Estimates],
    baselines: Mapping[str, Mapping[str, Estimates]],
    units: Mapping[str, str],
) -> LayerCurve | HeadGrid:
    """A curve over layers, or a grid of heads."""
    if by == "head":
        return HeadGrid(measures=measures, baselines=baselines, units=units)
    return LayerCurve(measures=measures, baselines=baselines, units=units, first=1)


def _estimated(by: By, scale: Scale, values: Floats, seed: int) -> dict[str, Estimates]:
    shown = values if by == "head" else values.mean(axis=2)
    found = {ALL: mean_over_sentences(shown[..., 0], seed=seed)}
    for place, target in enumerate(TARGETS[1:], 1):
        if scale == "raw":
            found[target] = mean_over_sentences(shown[..., place], seed=seed)
        else:
            there = np.isfinite(shown[..., place])
            parts = (np.where(there, shown[..., column], 0.0) for column in (place, 0))
            found[f"{target} / all"] = pooled_over_sentences(*parts, seed=seed)
    return found


def _any_piece(scale: Scale, measures: Mapping[str, Estimates]) -> Estimates:
    return measures[ALL] if scale == "raw" else Estimates.exact(np.ones(measures[ALL].shape))
