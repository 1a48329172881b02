"""Classes of attention patterns: vertical, diagonal, both, block, heterogeneous (Kovaleva et al. 2019, section 4.1)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.attention_patterns.site import PATTERN_CLASSIFIERS, PatternClassifierOption, pattern_class_site
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, LayersOrHeadsOption, uniform_baseline
from bertology.arrays import Array, FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous, percentile_interval, resampled_means
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, Table
from bertology.statistics.batch_features import SpecialTokens

AGREEMENT, KAPPA = "agreement of rule and CNN", "agreement of rule and CNN (kappa)"
ALL_LAYERS = "all layers"
CHANCE = "chance"


@analysis(
    question="What proportion of attention patterns is vertical, diagonal, vertical and diagonal, block or "
    "heterogeneous?",
    special_tokens="Special tokens: included (--special-tokens exclude removes them and renormalises). Most vertical "
    "lines are attention to special tokens.",
    citations=("kovaleva2019",),
    sites=lambda options: (pattern_class_site(options["special_tokens"]),),
    version=4,
)
def pattern_classes(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: LayersOrHeadsOption = "layers",
    pattern_classifier: PatternClassifierOption = "rule",
    special_tokens: Annotated[
        SpecialTokens,
        "`include` special tokens, or `exclude` them as sources and targets and renormalise the rows.",
    ] = "include",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> Table | HeadGrid:
    """Proportion of attention patterns of each of five classes, 0 none to 1 all; averaged over heads, then sentences.

    `vertical`: at least about half of the attention goes to the same columns; `diagonal`: to the previous token, the
    token itself or the next; `vertical and diagonal`: both; `block`: attention rarely crosses a boundary somewhere in
    the middle, such as that between two sentences; `heterogeneous`: all other patterns. The rule is defined in
    `attention_patterns/rule_classifier.py`, the training patterns of the CNN in `attention_patterns/synthetic.py`;
    `agreement of rule and CNN (kappa)` (by layer) is Cohen's kappa, `agreement of rule and CNN` (by head) the
    proportion of patterns on which they agree. Kovaleva et al. labelled about 400 patterns by hand for a network of
    eight convolutions (F1 0.86) and released neither, so that proportions are comparable only as far as the definitions
    agree. A head that attends to varying nearby tokens is heterogeneous by both. Patterns of fewer than 8 tokens are
    not classified.
    """
    site = pattern_class_site(special_tokens)
    classifier = PATTERN_CLASSIFIERS.index(pattern_classifier)
    classes = recording.stack(site)
    untrained = None if randomised is None else randomised.stack(site)
    build = _build_grid if show == "heads" else _build_table
    return build(classes, untrained, uniform_baseline(recording, site), classifier, seed)


def _build_grid(classes: Array, untrained: Array | None, uniform: Array, classifier: int, seed: int) -> HeadGrid:
    agrees = (classes[..., 0, :] * classes[..., 1, :]).sum(-1)
    agreement = exact_where_unanimous(bootstrap_mean(agrees, seed=seed))
    measures = {**_estimate_classes(classes[..., classifier, :], seed), AGREEMENT: agreement}
    grid = classes.shape[1:3]
    uniform_classes = _estimate_classes(uniform[..., classifier, :], seed)
    baselines = {
        UNIFORM_ATTENTION: {name: uniform_classes[name][:, None].broadcast_to(grid) for name in PATTERN_CLASSES}
    }
    if untrained is not None:
        baselines[UNTRAINED_MODEL] = _estimate_classes(untrained[..., classifier, :], seed)
    is_classified = np.isfinite(agrees).any(0)
    proportions = np.where(np.isfinite(classes), classes, 0.0).sum(0) / np.maximum(1, np.isfinite(classes).sum(0))
    chance = np.where(is_classified, proportions.prod(-2).sum(-1), np.nan)
    baselines[CHANCE] = {AGREEMENT: Estimates.exact(chance)}
    units = dict.fromkeys(measures, "proportion of patterns, 0 to 1")
    return HeadGrid(measures=measures, baselines=baselines, units=units)


def _build_table(classes: Array, untrained: Array | None, uniform: Array, classifier: int, seed: int) -> Table:
    layers = classes.shape[1]

    def estimate(values: Array) -> dict[str, Estimates]:
        return _estimate_classes(_layer_and_overall_means(values), seed)

    uniform_shape = (len(uniform), layers, 1, len(PATTERN_CLASSES))
    baselines = {UNIFORM_ATTENTION: estimate(np.broadcast_to(uniform[:, :, None, classifier], uniform_shape))}
    if untrained is not None:
        baselines[UNTRAINED_MODEL] = estimate(untrained[..., classifier, :])
    baselines[CHANCE] = {KAPPA: Estimates.exact(np.zeros(layers + 1))}
    return Table(
        measures={**estimate(classes[..., classifier, :]), KAPPA: _estimate_kappa(classes, seed)},
        baselines=baselines,
        units={**dict.fromkeys(PATTERN_CLASSES, "proportion of patterns, 0 to 1"), KAPPA: "kappa, -1 to 1"},
        row_names=(*(f"layer {layer + 1}" for layer in range(layers)), ALL_LAYERS),
        attributes={"layer": (*range(1, layers + 1), None)},
    )


def _layer_and_overall_means(values: Array) -> Array:
    """(sentence, layer + 1, ...) means over the heads of each layer, then over all heads."""
    by_layer = values.mean(2)
    return np.concatenate([by_layer, by_layer.mean(1, keepdims=True)], axis=1)


def _estimate_classes(values: Array, seed: int) -> dict[str, Estimates]:
    return exact_where_unanimous(bootstrap_mean(values, seed=seed)).by_name(PATTERN_CLASSES)


def _estimate_kappa(classes: Array, seed: int) -> Estimates:
    """Kappa of rule and CNN per layer and over all; the interval resamples sentences and contains the value."""
    joint = _layer_and_overall_means(classes[..., 0, :, None] * classes[..., 1, None, :])
    is_classified = np.isfinite(joint).all((1, 2, 3))
    if not is_classified.any():
        return Estimates.empty(joint.shape[1])
    value = cohen_kappa(joint[is_classified].mean(0))
    n = np.where(np.isfinite(value), is_classified.sum(), 0)
    if is_classified.sum() < 2:
        missing = np.full_like(value, np.nan)
        return Estimates(value=value, low=missing, high=missing, n=n)
    resampled = cohen_kappa(resampled_means(joint, np.ones(len(joint)), seed=seed))
    low, high = percentile_interval(np.where(np.isfinite(resampled), resampled, value))
    return Estimates(value=value, low=np.minimum(low, value), high=np.maximum(high, value), n=n)


def cohen_kappa(joint: Array) -> FloatArray:
    """(...) Cohen's kappa from (..., class, class) counts or proportions: 1 full agreement, 0 chance (Cohen 1960).

    NaN if both classifiers use a single class: chance agreement is then complete.
    """
    proportions = joint / joint.sum((-2, -1), keepdims=True)
    agreement = np.trace(proportions, axis1=-2, axis2=-1)
    chance = (proportions.sum(-1) * proportions.sum(-2)).sum(-1)
    margin = 1 - chance
    return np.divide(agreement - chance, margin, out=np.full_like(margin, np.nan), where=margin > 1e-12)
