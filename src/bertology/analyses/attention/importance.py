"""Does it matter what heads look at: how does the loss change with each attention weight (clark2019, section 3.2)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from bertology.analyses.declaration import analysis
from bertology.measures.attention.weight_importance import TARGETS, By, Scale, mean_by_target, shown_by, targets_of
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid, LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

QUANTITIES = ("gradient", "product")
UNITS = {"gradient": "objective a unit of attention, 0 no effect", "product": "objective, 0 no effect"}


@reduction(
    "attention.importance",
    axes=("measure",),
    labels=tuple(f"{quantity}, {target}" for quantity in QUANTITIES for target in TARGETS),
    about="mean |gradient| of the objective with respect to attention, and |weight x gradient|, by target",
    prepare=targets_of,
    gradient=True,
)
def IMPORTANCE(layer: LayerActivations, frame: Frame, targets: Tensor) -> Tensor:
    """(batch, head, measure) means over rows and targets; NaN where a sentence has no such target."""
    import torch

    assert layer.gradient is not None, "the recorder hands gradient sites their gradients"
    slopes = layer.gradient.float().abs()
    weights = layer.attention.float()
    found = [mean_by_target(values, weights, targets, frame.real) for values in (slopes, weights * slopes)]
    return torch.cat(found, -1)


@analysis(
    question="Does it matter what heads look at: how does the loss change with each attention weight?",
    special="special tokens are sources and targets; masked pieces are targets of their own",
    cites=("clark2019",),
    sites=(IMPORTANCE,),
)
def importance(
    recording: Recording,
    randomised: Recording | None,
    *,
    quantity: Annotated[
        Literal["gradient", "product"],
        "`gradient`: |∂L/∂α|, a weight's effect if it changed; `product`: |α ∂L/∂α|, if it were gone (first order)",
    ] = "gradient",
    scale: Annotated[Scale, "each target as a ratio to all unmasked pieces, or as it is"] = "ratio",
    by: Annotated[By, "a curve over layers (mean over heads), or every head"] = "layer",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> LayerCurve | HeadGrid:
    """Mean |∂L/∂α| over the weights on a target, a ratio to that of all unmasked pieces: 0 no effect, 1 as any piece.

    L is the masked-language-model loss with 15 % of the pieces masked, summed over a sentence's masked pieces, or the
    score of the top class in models without that head. The mean is over heads, source pieces and targets of a
    sentence, then over sentences that have such a target. Clark et al. do not say how the loss is reduced, so ratios
    can be compared and sizes cannot; their `. or ,` is all punctuation here, and targets that are masked count only
    as `masked`. `attention/integrated` follows each layer's attention from nothing to what it is instead of taking
    the slope at its end.
    """
    width = len(TARGETS)
    columns = slice(width) if quantity == "gradient" else slice(width, None)
    fresh = None if randomised is None else randomised.stacked(IMPORTANCE)[..., columns]
    values = recording.stacked(IMPORTANCE)[..., columns]
    return shown_by(by, scale, values, fresh, unit=UNITS[quantity], seed=seed)
