"""Grids of heads and curves of layers: from reduced sites and importance by target, with their baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from bertology.arrays import Array
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, bootstrap_ratio, ratio
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.statistics.batch_features import KINDS_BY_PUNCTUATION, TOKEN_KINDS, Punctuation, SpecialTokens

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

BATCH_INPUTS = 32
UNIFORM_ATTENTION, UNTRAINED_MODEL = "uniform attention", "untrained model"
NO_REFERENCES: Mapping[str, Callable[[TokenBatch], Tensor]] = MappingProxyType({})

Average = Literal["micro", "macro"]
AverageOption = Annotated[Average, "`micro`: pool all attention, as in the paper; `macro`: average per sentence first."]


def target_name(kind: str) -> str:
    """A kind of target token in the name of a measure: `other` reads `other tokens`."""
    return "other tokens" if kind == "other" else kind


def mean_grid(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    *,
    units: str | Mapping[str, str],
    seed: int,
) -> HeadGrid:
    """The mean over sentences of each label of the site, for every head, with both baselines.

    Labels without a value in any sentence are dropped.
    """
    return _head_grid(recording, randomised, site, lambda values: label_means(values, site, seed), units)


def ratio_grid(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    *,
    units: Mapping[str, str],
    average: Average,
    seed: int,
    labels: Sequence[str] | None = None,
    references: Mapping[str, Callable[[TokenBatch], Tensor]] = NO_REFERENCES,
) -> HeadGrid:
    """The ratio of sums to totals of each label of the site, for every head, with the baselines.

    The site holds (2, label) per sentence: sums, then totals. `micro` pools both over all sentences; `macro` averages
    the ratios of sentences. `labels` selects among those of the site. `references` are further baselines: artificial
    heads, given by their attention, see `reduce_attention`.
    """

    def estimate(values: Array) -> dict[str, Estimates]:
        sums, totals = values[..., 0, :], values[..., 1, :]
        if average == "micro":
            return bootstrap_ratio(sums, totals, seed=seed).by_name(site.labels)
        return label_means(ratio(sums, totals, empty=np.nan), site, seed)

    return _head_grid(recording, randomised, site, estimate, units, labels, references)


def _head_grid(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    estimate: Callable[[Array], dict[str, Estimates]],
    units: str | Mapping[str, str],
    labels: Sequence[str] | None = None,
    references: Mapping[str, Callable[[TokenBatch], Tensor]] = NO_REFERENCES,
) -> HeadGrid:
    """The measures that `estimate` gives for the stacked values of the site, and their baselines."""
    measures = estimate(recording.stack(site))
    selected = [label for label in site.labels if labels is None or label in labels]
    measured = [label for label in selected if measures[label].n.any()] or selected
    grid = (recording.encoder.layers, recording.encoder.heads)
    artificial = {UNIFORM_ATTENTION: uniform_baseline(recording, site)}
    artificial |= {name: reduce_attention(recording, site, build)[:, None] for name, build in references.items()}
    baselines = {
        name: {label: estimates[label][:, None].broadcast_to(grid) for label in measured}
        for name, estimates in ((name, estimate(values)) for name, values in artificial.items())
    }
    if randomised is not None:
        untrained = estimate(randomised.stack(site))
        baselines[UNTRAINED_MODEL] = {label: untrained[label] for label in measured}
    unit_by_label = dict.fromkeys(measured, units) if isinstance(units, str) else units
    return HeadGrid(measures={label: measures[label] for label in measured}, baselines=baselines, units=unit_by_label)


def uniform_baseline(recording: Recording, site: ReducedSite) -> Array:
    """(input, layer, ...) values of the site for a head with uniform attention over all visible tokens.

    The layer axis has length 1 if visibility is the same in all layers; it differs only if some layers have an
    attention window and an input is longer than that window.
    """
    encoder = recording.encoder
    max_distance = max(len(recorded_input.tokens) for recorded_input in recording.inputs) - 1
    windows = [w if w is not None and w < max_distance else None for w in encoder.attention_windows] or [None]
    by_window = {
        window: reduce_attention(recording, site, uniform_weights(encoder.causal, window))
        for window in dict.fromkeys(windows)
    }
    layers = windows if len(by_window) > 1 else windows[:1]
    return np.stack([by_window[window] for window in layers], axis=1)


def uniform_weights(causal: bool, window: int | None) -> Callable[[TokenBatch], Tensor]:
    """A function that builds (batch, from, to) uniform attention, limited to `window` tokens in each direction."""

    def uniform(batch: TokenBatch) -> Tensor:
        visible = torch.ones(batch.padded_length, batch.padded_length)
        visible = visible if window is None else visible.tril(window).triu(-window)
        visible = visible.tril() if causal else visible
        return (visible / visible.sum(1, keepdim=True)).expand(len(batch.inputs), -1, -1)

    return uniform


def reduce_attention(recording: Recording, site: ReducedSite, build_attention: Callable[[TokenBatch], Tensor]) -> Array:
    """(input, ...) values of the site for an artificial head with (batch, from, to) attention.

    Inputs of the same length are batched together, so that the attention needs no padding.
    """
    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

    by_length: dict[int, list[int]] = defaultdict(list)
    for index, recorded_input in enumerate(recording.inputs):
        by_length[len(recorded_input.tokens)].append(index)
    values: list[Any] = [None] * len(recording)
    for indices in by_length.values():
        for start in range(0, len(indices), BATCH_INPUTS):
            chunk = indices[start : start + BATCH_INPUTS]
            batch = TokenBatch([recording.inputs[index] for index in chunk])
            layer = LayerActivations(0, build_attention(batch)[:, None])
            reduced = site.reduce(layer, batch, site.prepare(batch) if site.prepare else None)
            for index, value in zip(chunk, reduced[:, 0].numpy(), strict=True):
                values[index] = value
    return np.stack(values)


def measures_and_baselines(
    values: Array, site: ReducedSite, names: Iterable[str], names_by_baseline: Mapping[str, Sequence[str]], seed: int
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    """The measures of a site that have a value, and the baselines that are labels of the site: `BASELINE, MEASURE`."""
    means = label_means(values, site, seed)
    measures = {name: means[name] for name in names if means[name].n.any()}
    baselines = {
        baseline: {name: means[f"{baseline}, {name}"] for name in baseline_names if name in measures}
        for baseline, baseline_names in names_by_baseline.items()
    }
    return measures, baselines


def label_means(values: Array, site: ReducedSite, seed: int) -> dict[str, Estimates]:
    """The mean over sentences of each label of a site, from its stacked (input, ..., label) values."""
    return bootstrap_mean(values, seed=seed).by_name(site.labels)


LayersOrHeads = Literal["layers", "heads"]
LayersOrHeadsOption = Annotated[
    LayersOrHeads, "`layers`: one value per layer, averaged over heads; `heads`: one value per head."
]
Normalisation = Literal["relative", "none"]
NormaliseOption = Annotated[
    Normalisation, "`relative`: as a ratio to the mean over all unmasked tokens; `none`: raw values."
]
SpecialTokensOption = Annotated[SpecialTokens, "`include` special tokens, or `exclude` them as sources and targets."]

ALL_UNMASKED = "all unmasked tokens"
TARGETS = (ALL_UNMASKED, *map(target_name, TOKEN_KINDS), "masked tokens")


def target_classes(
    batch: TokenBatch, special_tokens: SpecialTokens = "include", punctuation: Punctuation = "all"
) -> Tensor:
    """(batch, token, target) booleans, in the order of `TARGETS`."""
    unmasked = source_mask(batch, special_tokens) & ~batch.mlm_mask
    kinds = KINDS_BY_PUNCTUATION[punctuation](batch) & unmasked.unsqueeze(-1)
    return torch.cat([unmasked.unsqueeze(-1), kinds, batch.mlm_mask.unsqueeze(-1)], -1)


def source_mask(batch: TokenBatch, special_tokens: SpecialTokens) -> Tensor:
    """(batch, token) booleans: the tokens whose rows count."""
    return batch.token_mask if special_tokens == "include" else batch.non_special_mask


def mean_by_target(values: Tensor, attention: Tensor, targets: Tensor, sources: Tensor) -> Tensor:
    """(batch, head, target) means of (batch, head, from, to) values over the sources and each kind of target.

    Attention weights of exactly 0 (invisible tokens) do not count. NaN if a sentence has no such target.
    """
    mask = ((attention > 0) & sources[:, None, :, None]).to(values.dtype)
    flags = targets.to(values.dtype).unsqueeze(1)
    return ((values * mask) @ flags).sum(2) / (mask @ flags).sum(2)


def importance_shape(
    show: LayersOrHeads,
    normalise: Normalisation,
    values: Array,
    randomised: Array | None,
    *,
    quantity: str,
    unit: str,
    seed: int,
) -> LayerCurve | HeadGrid:
    """Importance by target from (sentence, layer, head, target) values, with its baselines.

    `quantity` is the first word of the measures' names, such as `gradient`.
    """
    measures = _target_estimates(show, normalise, values, quantity, seed)
    measured = {name: estimates for name, estimates in measures.items() if estimates.n.any()}
    if not measured:
        raise Refusal(
            "No input contains a non-special token",
            "inputs with text",
            "Use other texts, or --special-tokens include",
        )
    overall = measure_name(quantity, ALL_UNMASKED)
    average = measures[overall] if normalise == "none" else Estimates.exact(np.ones(measures[overall].shape))
    baselines = {"average unmasked token": {name: average for name in measured if name != overall}}
    if randomised is not None:
        untrained = _target_estimates(show, normalise, randomised, quantity, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in measured}
    units = {
        name: unit if normalise == "none" or name == overall else "ratio, 1: average unmasked token"
        for name in measured
    }
    return curve_or_grid(show, measured, baselines, units)


def measure_name(quantity: str, target: str, normalise: Normalisation = "none") -> str:
    """The name of the measure for a target, such as `gradient for [SEP] (relative)`."""
    return f"{quantity} for {target}" + (" (relative)" if normalise == "relative" else "")


def curve_or_grid(
    show: LayersOrHeads,
    measures: Mapping[str, Estimates],
    baselines: Mapping[str, Mapping[str, Estimates]],
    units: Mapping[str, str],
) -> LayerCurve | HeadGrid:
    """A curve over layers, or a grid of heads."""
    if show == "heads":
        return HeadGrid(measures=measures, baselines=baselines, units=units)
    return LayerCurve(measures=measures, baselines=baselines, units=units, first_layer=1)


def _target_estimates(
    show: LayersOrHeads, normalise: Normalisation, values: Array, quantity: str, seed: int
) -> dict[str, Estimates]:
    shown = values if show == "heads" else values.mean(axis=2)
    estimates = {measure_name(quantity, ALL_UNMASKED): bootstrap_mean(shown[..., 0], seed=seed)}
    for index, target in enumerate(TARGETS[1:], 1):
        name = measure_name(quantity, target, normalise)
        if normalise == "none":
            estimates[name] = bootstrap_mean(shown[..., index], seed=seed)
        else:
            present = np.isfinite(shown[..., index])
            target_sums, all_sums = (np.where(present, shown[..., column], 0.0) for column in (index, 0))
            estimates[name] = bootstrap_ratio(target_sums, all_sums, seed=seed)
    return estimates
