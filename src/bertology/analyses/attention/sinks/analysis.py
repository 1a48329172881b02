"""Attention sinks: is attention to [SEP] or [CLS] a no-op (Clark et al. 2019)?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from annotated_types import Ge

from bertology.analyses.attention.sinks.value_zeroing import UNITS as EFFECT_UNITS
from bertology.analyses.attention.sinks.value_zeroing import EffectMetric, LayerScope, ValueZeroing, zeroing_effects
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, LayersOrHeads, curve_or_grid
from bertology.arrays import Array
from bertology.encoder.encoder import GatedEncoder, Randomisable
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, bootstrap_ratio, exact_where_unanimous
from bertology.lazy import torch
from bertology.number_ranges import PROPORTION
from bertology.recording.plan import affordable_sample_size, sample_inputs
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.transformed_values import transformed_values_per_head
from bertology.statistics.visibility import visibility_mask

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

Sink = Literal["sep", "cls", "special", "first"]

SINKS: dict[Sink, str] = {"sep": "[SEP]", "cls": "[CLS]", "special": "[CLS] and [SEP]", "first": "first token"}
SPECIAL_KINDS: dict[Sink, tuple[SpecialToken, ...]] = {
    "sep": (SpecialToken.SEP,),
    "cls": (SpecialToken.CLS,),
    "special": (SpecialToken.CLS, SpecialToken.SEP),
}
STATISTICS = (
    "attention to the sink",
    "highest attention to one token",
    "attention to the sink, uniform",
    "highest attention to one token, uniform",
)
NORMS = ("weighted norm", "weighted norm of an average token")
ATTENTION, SINK_RATE, NO_OP_INDEX = "attention to the sink", "sink rate", "no-op index"
EFFECT = "effect of removing the sink's value"
MAX_SECONDS = 300.0
"""What all passes without values may take one core, for one model."""
UNITS = {
    ATTENTION: "share of attention, 0 to 1",
    SINK_RATE: "proportion of heads, 0 to 1",
    NO_OP_INDEX: "index, at most 1 (1: no effect, 0: like an average token)",
}
NOT_MEASURED = {
    NO_OP_INDEX: "it needs value vectors, which the recording lacks; use --model and --corpus instead of --recording, "
    "or record the site attention.sink_norms",
    EFFECT: "the model runs again without the sink's values; use --model and --corpus instead of --recording",
}
"""Why a recording may lack a measure."""


def sink_tokens(batch: TokenBatch, sink: Sink) -> Tensor:
    """(batch, token) booleans: the tokens of the sink."""
    if sink == "first":
        return batch.token_mask & (torch.arange(batch.padded_length, device=batch.device) == 0)
    mask = torch.zeros_like(batch.token_mask)
    for kind in SPECIAL_KINDS[sink]:
        mask |= batch.special_kinds == kind
    return batch.token_mask & mask


@reduction(
    "attention.sinks",
    axes=("sink", "statistic"),
    labels=STATISTICS,
    description="attention received by [SEP], [CLS], both, and the first token",
    version=3,
)
def sink_site(layer: LayerActivations, batch: TokenBatch, _: None) -> Tensor:
    """(batch, head, sink, statistic) means over rows; NaN if a sentence has no such token or no other token."""
    weights = layer.attention.float()
    visible = visibility_mask(layer, batch).float()
    uniform = visible / visible.sum(-1, keepdim=True).clamp(min=1)

    def statistics(tokens: Tensor, _others: Tensor) -> tuple[Tensor, ...]:
        received = _received_attention(weights, visible, tokens, batch)
        return *received, *_received_attention(uniform, visible, tokens, batch)

    return _by_sink(batch, statistics)


@reduction(
    "attention.sink_norms",
    axes=("sink", "statistic"),
    labels=NORMS,
    description="norms of the weighted values of [SEP], [CLS], both, and the first token, and of an average token",
    needs_values=True,
)
def sink_norm_site(layer: LayerActivations, batch: TokenBatch, _: None) -> Tensor:
    """(batch, head, sink, norm) means over rows; NaN if a sentence has no such token or no other token."""
    weights = layer.attention.float()
    visible = visibility_mask(layer, batch).float()
    value_norms = transformed_values_per_head(layer).norm(dim=-1)
    weighted_norms = (weights * visible).sum(2) * value_norms

    def statistics(tokens: Tensor, others: Tensor) -> tuple[Tensor, ...]:
        attention, _ = _received_attention(weights, visible, tokens, batch)
        mean_norm = (value_norms * others).sum(-1) / others.sum(-1)
        norm = (weighted_norms * tokens.unsqueeze(1)).sum(-1) / batch.lengths[:, None]
        return norm, attention * mean_norm

    return _by_sink(batch, statistics)


def _by_sink(batch: TokenBatch, statistics: Callable[[Tensor, Tensor], tuple[Tensor, ...]]) -> Tensor:
    """(batch, head, sink, statistic) statistics of the tokens of each sink and of the other non-special tokens."""
    by_sink: list[Tensor] = []
    for sink in SINKS:
        tokens = sink_tokens(batch, sink)
        others = (batch.non_special_mask & ~tokens).unsqueeze(1).float()
        is_defined = tokens.any(1) & (others.sum((1, 2)) > 0)
        by_sink.append(torch.stack(statistics(tokens, others), -1).where(is_defined[:, None, None], torch.nan))
    return torch.stack(by_sink, 2)


def _received_attention(weights: Tensor, visible: Tensor, tokens: Tensor, batch: TokenBatch) -> tuple[Tensor, Tensor]:
    """(batch, head) twice: the share of attention that the tokens receive, and the highest share of one of them.

    The share of one token is the mean over the rows that can see it.
    """
    received = (weights * visible).sum(2)
    total = (received * tokens.unsqueeze(1)).sum(-1) / batch.lengths[:, None]
    per_token = received / visible.sum(2).clamp(min=1)
    return total, per_token.masked_fill(~tokens.unsqueeze(1), 0).amax(-1)


@analysis(
    question="Is attention to [SEP] or [CLS] a no-op: does the output change if their value vectors are removed?",
    special_tokens="Special tokens: included. Effects are measured on non-special tokens.",
    citations=("clark2019", "kobayashi2020", "gu2025"),
    sites=(sink_site, sink_norm_site),
    version=3,
)
def sinks(
    recording: Recording,
    randomised: Recording | None,
    encoder: GatedEncoder | None,
    *,
    sink: Annotated[
        Sink,
        "Token that may be a sink: `sep`, `cls`, both (`special`), or the `first` token, for models without special "
        "tokens.",
    ] = "sep",
    sink_threshold: Annotated[
        float, PROPORTION, "Minimum mean attention to one token for a head to count as having a sink."
    ] = 0.3,
    effect: Annotated[
        EffectMetric,
        "Where the effect is measured: last `hidden` states, masked-language-model `loss` (15 % masked), or `logits` "
        "of the task head.",
    ] = "hidden",
    scope: Annotated[
        LayerScope, "Remove value vectors in one `layer` at a time, or in it and all layers above (`layer-and-above`)."
    ] = "layer",
    show: Annotated[
        LayersOrHeads,
        "`layers`: one value per layer, averaged over heads; `heads`: one value per head (one forward pass per head).",
    ] = "layers",
    sample_size: Annotated[
        int | Literal["auto"],
        Ge(0),
        "Measure the effect on a random sample of this many inputs, each of which needs many passes (0: all); `auto`: "
        "all, fewer of a large model.",
    ] = "auto",
    seed: Annotated[int, "Random seed (sample, masking, random other tokens, bootstrap)."] = 0,
) -> LayerCurve | HeadGrid:
    """No-op index of a sink: 1 its value vectors add nothing, 0 as much as those of an average token, below 0 more.

    `attention to the sink` is the share of attention that the tokens of the sink receive, averaged over rows. `sink
    rate` is the proportion of heads and sentences in which one of them receives more than the threshold, as a mean over
    the rows that can see it. The index is 1 - Σ α‖f(sink)‖ / Σ α f̄, where f̄ is the mean ‖f(x)‖ of the sentence's
    non-special tokens in that head (see `attention/norms`); sums are over the heads of a layer and over sentences, so
    that heads are weighted by their attention to the sink. `effect of removing the sink's value` is the change of the
    output if the sink's value vectors are zero in a layer (or head) while attention is unchanged: the mean over
    non-special tokens of ‖Δh‖ / ‖h‖, or the increase of the loss, or the divergence of the scores. The baseline `random
    other token` is the same for as many random other tokens, which receive far less attention.

    Recorded attention gives the attention to the sink and the sink rate. The index needs value vectors and the effect
    needs the model; without them they are not measured. The effect needs two passes for each layer (or head): it is
    measured on so many inputs that one core takes less than five minutes for a model, and the result says how many
    (about 70 sentences of 20 tokens for 12 layers of width 768; measured: 2.8 s for one).
    """
    index = list(SINKS).index(sink)
    statistics = recording.stack(sink_site)[..., index, :]
    if not np.isfinite(statistics).any():
        raise Refusal(
            f"No input contains both {SINKS[sink]} and a non-special token",
            "inputs with that token",
            f"Choose another with --sink: {', '.join(SINKS)}",
        )
    size = _affordable_sample_size(recording, encoder, show) if sample_size == "auto" else sample_size
    config = ValueZeroing(effect, scope, by_head=show == "heads", sample_size=size, seed=seed)

    def measures_of(model: Recording, runnable: GatedEncoder | None) -> tuple[dict[str, Estimates], Estimates | None]:
        """The measures, and the effect of removing random other tokens."""
        attention, highest = (model.stack(sink_site)[..., index, column] for column in range(2))
        values = _attention_measures(attention, highest, sink_threshold, show, seed)
        if sink_norm_site.storage_key in model.sites:
            values[NO_OP_INDEX] = _no_op_index(model.stack(sink_norm_site)[..., index, :], show, seed)
        if runnable is None:
            return values, None
        effects, control = zeroing_effects(model, runnable, lambda batch: sink_tokens(batch, sink), config)
        return values | {EFFECT: bootstrap_mean(effects, seed=seed)}, bootstrap_mean(control, seed=seed)

    measures, control_effect = measures_of(recording, encoder)
    baselines: dict[str, dict[str, Estimates]] = {
        UNIFORM_ATTENTION: _attention_measures(statistics[..., 2], statistics[..., 3], sink_threshold, show, seed)
    }
    if randomised is not None:
        untrained = None if encoder is None else cast("Randomisable", encoder).randomised(seed=0)
        untrained_measures, _ = measures_of(randomised, untrained)
        baselines[UNTRAINED_MODEL] = {name: values for name, values in untrained_measures.items() if name in measures}
    random_token: dict[str, Estimates] = {}
    if NO_OP_INDEX in measures:
        random_token[NO_OP_INDEX] = Estimates.exact(np.zeros(measures[ATTENTION].shape))
    if control_effect is not None:
        random_token[EFFECT] = control_effect
    if random_token:
        baselines["random other token"] = random_token
    units = {**UNITS, EFFECT: EFFECT_UNITS[effect]}
    result = curve_or_grid(show, measures, baselines, {name: units[name] for name in measures})
    missing = {name: reason for name, reason in NOT_MEASURED.items() if name not in measures}
    sample = {"inputs": len(recording)}
    if encoder is not None:
        sample["inputs whose value vectors were removed"] = len(sample_inputs(recording, size, seed))
    return result.model_copy(update={"not_measured": missing, "sample": sample})


def _affordable_sample_size(recording: Recording, encoder: GatedEncoder | None, show: LayersOrHeads) -> int:
    """The number of inputs whose passes stay within the budget."""
    if encoder is None:
        return 0
    n_passes = 1 + 2 * encoder.layers * (encoder.heads if show == "heads" else 1)
    lengths = [len(recorded_input.tokens) for recorded_input in recording.inputs]
    return affordable_sample_size(encoder, lengths, n_passes, seconds=MAX_SECONDS, maximum=len(recording))


def _no_op_index(norms: Array, show: LayersOrHeads, seed: int) -> Estimates:
    norm, average_norm = (norms[..., index] for index in range(2))
    sums = [np.where(np.isfinite(norm), values, 0.0) for values in (norm, average_norm)]
    norm_sum, average_sum = sums if show == "heads" else (values.sum(axis=2) for values in sums)
    return bootstrap_ratio(norm_sum, average_sum, seed=seed).map(lambda values: 1 - values)


def _attention_measures(
    attention: Array, highest: Array, sink_threshold: float, show: LayersOrHeads, seed: int
) -> dict[str, Estimates]:
    is_sink = np.where(np.isfinite(highest), highest > sink_threshold, np.nan)
    return {
        ATTENTION: _estimate_mean(attention, show, seed),
        SINK_RATE: exact_where_unanimous(_estimate_mean(is_sink, show, seed)),
    }


def _estimate_mean(values: Array, show: LayersOrHeads, seed: int) -> Estimates:
    return bootstrap_mean(values if show == "heads" else values.mean(axis=2), seed=seed)
