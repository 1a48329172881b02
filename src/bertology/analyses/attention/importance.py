"""Does it matter what heads look at: how does the loss change with each attention weight (clark2019, section 3.2)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertology.analyses.declaration import Sites, analysis
from bertology.measures.attention.special_tokens import SpecialTokens
from bertology.measures.attention.weight_importance import (
    TARGETS,
    By,
    Scale,
    mean_by_target,
    shown_by,
    sources_of,
    targets_of,
)
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid, LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

QUANTITIES = ("gradient", "product")
UNITS = {"gradient": "objective a unit of attention, 0 no effect", "product": "objective, 0 no effect"}


def _site(special: SpecialTokens) -> ReducedSite:
    left_out = special == "drop"

    @reduction(
        "attention.importance" + ".ordinary" * left_out,
        axes=("measure",),
        labels=tuple(f"{quantity}, {target}" for quantity in QUANTITIES for target in TARGETS),
        about="mean |gradient| of the objective with respect to attention, and |weight x gradient|, by target"
        + ", special tokens left out" * left_out,
        prepare=lambda frame: targets_of(frame, special),
        gradient=True,
    )
    def site(layer: LayerActivations, frame: Frame, targets: Tensor) -> Tensor:
        """(batch, head, measure) means over rows and targets; NaN where a sentence has no such target."""
        import torch

        assert layer.gradient is not None, "the recorder hands gradient sites their gradients"
        slopes = layer.gradient.float().abs()
        weights = layer.attention.float()
        rows = sources_of(frame, special)
        return torch.cat([mean_by_target(values, weights, targets, rows) for values in (slopes, weights * slopes)], -1)

    return site


IMPORTANCE, IMPORTANCE_ORDINARY = _site("keep"), _site("drop")


def _sites(options: Mapping[str, Any]) -> Sites:
    return (IMPORTANCE_ORDINARY if options["special"] == "drop" else IMPORTANCE,)


@analysis(
    question="Does it matter what heads look at: how does the loss change with each attention weight?",
    special="sources and targets, or neither with --special drop; masked pieces are targets of their own",
    cites=("clark2019",),
    sites=_sites,
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
    special: Annotated[SpecialTokens, "keep special tokens, or drop them as sources and as targets"] = "keep",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> LayerCurve | HeadGrid:
    """Mean |∂L/∂α| over the weights on a target, a ratio to that of all unmasked pieces: 0 no effect, 1 as any piece.

    L is the masked-language-model loss with 15 % of the pieces masked, summed over a sentence's masked pieces, or
    the loss of all next pieces; in models without such a head the score of what they predict (a class, all tags,
    both ends of an answer), or with --objective gold the loss of what the corpus has: the class, the tags of all
    words at their first pieces, both ends of the first answer (the first piece where the passage has none). The mean
    is over heads, source pieces and targets of a sentence, then over sentences that have such a target. Clark et al.
    do not say how the loss is reduced, so ratios can be compared and sizes cannot; their `. or ,` is all punctuation
    here, and targets that are masked count only as `masked`. `attention/integrated` follows each layer's attention
    from nothing to what it is instead of taking the slope at its end.
    """
    width = len(TARGETS)
    columns = slice(width) if quantity == "gradient" else slice(width, None)
    (site,) = _sites({"special": special})
    fresh = None if randomised is None else randomised.stacked(site)[..., columns]
    values = recording.stacked(site)[..., columns]
    return shown_by(by, scale, values, fresh, unit=UNITS[quantity], seed=seed)
