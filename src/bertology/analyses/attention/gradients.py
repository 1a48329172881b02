"""Gradients of the loss with respect to attention weights (Clark et al. 2019, section 3.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import (
    TARGETS,
    LayersOrHeadsOption,
    NormaliseOption,
    SpecialTokensOption,
    importance_shape,
    mean_by_target,
    source_mask,
    target_classes,
)
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.batch_features import Punctuation, PunctuationOption, SpecialTokens

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

Attribution = Literal["gradient", "gradient-x-attention"]
ATTRIBUTIONS: dict[Attribution, str] = {"gradient": "gradient", "gradient-x-attention": "gradient x attention"}
UNITS: dict[Attribution, str] = {
    "gradient": "gradient, objective per unit of attention",
    "gradient-x-attention": "objective",
}


def _build_site(special_tokens: SpecialTokens, punctuation: Punctuation) -> ReducedSite:
    without_special = special_tokens == "exclude"
    suffix = ".non_special" * without_special + ".full_stop_and_comma" * (punctuation == ".,")

    @reduction(
        f"attention.gradients{suffix}",
        axes=("measure",),
        labels=tuple(f"{attribution}, {target}" for attribution in ATTRIBUTIONS.values() for target in TARGETS),
        description="mean absolute gradient of the objective with respect to attention, and gradient x attention, by "
        "target" + " (no special tokens)" * without_special + " (full stops and commas)" * (punctuation == ".,"),
        prepare=partial(target_classes, special_tokens=special_tokens, punctuation=punctuation),
        needs_gradient=True,
        version=2,
    )
    def site(layer: LayerActivations, batch: TokenBatch, targets: Tensor) -> Tensor:
        """(batch, head, measure) means over rows and targets; NaN if a sentence has no such target."""
        assert layer.gradient is not None, "the recorder computes gradients for gradient sites"
        gradients = layer.gradient.float().abs()
        attention = layer.attention.float()
        rows = source_mask(batch, special_tokens)
        products = (gradients, attention * gradients)
        return torch.cat([mean_by_target(values, attention, targets, rows) for values in products], -1)

    return site


SITES = {
    (special_tokens, punctuation): _build_site(special_tokens, punctuation)
    for special_tokens in get_args(SpecialTokens)
    for punctuation in get_args(Punctuation)
}
gradient_site, non_special_gradient_site = SITES["include", "all"], SITES["exclude", "all"]


@analysis(
    question="How strongly does the loss depend on the attention paid to each kind of token?",
    special_tokens="Special tokens: included (--special-tokens exclude removes them). Masked tokens are a separate "
    "kind of target.",
    citations=("clark2019",),
    sites=lambda options: (SITES[options["special_tokens"], options["punctuation"]],),
    version=2,
)
def gradients(
    recording: Recording,
    randomised: Recording | None,
    *,
    attribution: Annotated[
        Attribution,
        "`gradient`: |∂L/∂α|, the effect of changing a weight; `gradient-x-attention`: |α ∂L/∂α|, the first-order "
        "effect of removing it.",
    ] = "gradient",
    normalise: NormaliseOption = "relative",
    show: LayersOrHeadsOption = "layers",
    special_tokens: SpecialTokensOption = "include",
    punctuation: PunctuationOption = "all",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> LayerCurve | HeadGrid:
    """Mean |∂L/∂α| of attention to a kind of token, relative to all unmasked tokens: 0 no effect, 1 like the average.

    L is the masked-language-model loss with 15 % of the tokens masked, summed over the masked tokens of a sentence, or
    the loss of all next tokens; for models without such a task head the score of the prediction (a class, all tags,
    both ends of an answer), or with --objective gold the loss of the gold labels: the class, the tags of all words at
    their first tokens, both ends of the first answer (the first token if the passage has none). The mean is over heads,
    source tokens and targets of a sentence, then over sentences with such a target. Clark et al. do not say how the
    loss is reduced, so that ratios are comparable and magnitudes are not. Their `. or ,` is --punctuation ., here, and
    masked targets count only as `masked tokens`. `attention/integrated_gradients` integrates from zero attention to the
    actual attention instead of taking the gradient there.
    """
    site, width = SITES[special_tokens, punctuation], len(TARGETS)
    columns = slice(width) if attribution == "gradient" else slice(width, None)
    return importance_shape(
        show,
        normalise,
        recording.stack(site)[..., columns],
        None if randomised is None else randomised.stack(site)[..., columns],
        quantity=ATTRIBUTIONS[attribution],
        unit=UNITS[attribution],
        seed=seed,
    )
