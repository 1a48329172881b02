"""Similarity of attention in two models, such as before and after fine-tuning (Kovaleva et al. 2019, section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from bertology.analyses.attention.model_similarity.head_functions import function_changes
from bertology.analyses.attention_patterns.site import (
    PATTERN_CLASSIFIERS,
    PatternClassifierOption,
    pattern_class_site,
)
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL, curve_or_grid
from bertology.analyses.head_selection.functions import STRONGEST_WORD
from bertology.analyses.head_selection.selection import head_attributes
from bertology.arrays import Array, FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.lazy import torch
from bertology.recording.paired_sites import ComparedPositions, PairedSite, have_same_tokens
from bertology.recording.recording import Recording, shared_inputs
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table
from bertology.statistics.batch_features import MIN_MASS

if TYPE_CHECKING:
    from torch import Tensor

ModelSimilarityView = Literal["heads", "layers", "pattern-classes", "functions"]

COSINE, DIVERGENCE = "cosine similarity", "Jensen-Shannon divergence"
MEASURES = (COSINE, f"{COSINE} (no special tokens)", DIVERGENCE, f"{DIVERGENCE} (no special tokens)")
CLASS_CHANGE = "pattern class changed"
UNITS = {
    **dict.fromkeys(MEASURES[:2], "cosine, -1 to 1"),
    **dict.fromkeys(MEASURES[2:], "nats, 0 to ln 2"),
    CLASS_CHANGE: "proportion of patterns, 0 to 1",
}
DIFFERENT_HEAD, CHANCE = "different head of the layer", "chance"
MIN_WEIGHT = 1e-30


def compare_attention(first: Tensor, second: Tensor, positions: ComparedPositions) -> Tensor:
    """(batch, head, 2, 4): the measures between the same heads, and between each head and the previous one of `second`.

    NaN if a measure is undefined.
    """
    values = first.new_full((*first.shape[:2], 2, len(MEASURES)), float("nan"))
    partners = (second, second.roll(1, dims=1)) if first.shape[1] > 1 else (second,)
    for column, mask in enumerate((positions.token_mask, positions.non_special_mask)):
        cropped, row_mask = _crop(first, mask)
        for index, partner in enumerate(partners):
            cropped_partner, partner_row_mask = _crop(partner, mask)
            values[:, :, index, column] = _cosine(cropped, cropped_partner)
            values[:, :, index, 2 + column] = _divergence(cropped, cropped_partner, row_mask & partner_row_mask)
    return torch.where(values.isfinite(), values, float("nan"))


def _crop(attention: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention with 0 outside the mask and renormalised rows, and (batch, head, from) rows with mass left."""
    inside = attention * (mask[:, None, :, None] & mask[:, None, None])
    mass = inside.sum(-1, keepdim=True)
    return inside / mass.clamp(min=MIN_MASS), mass.squeeze(-1) > MIN_MASS


def _cosine(first: Tensor, second: Tensor) -> Tensor:
    squared_norms = first.square().sum((-1, -2)) * second.square().sum((-1, -2))
    return (first * second).sum((-1, -2)) / squared_norms.sqrt()


def _divergence(first: Tensor, second: Tensor, row_mask: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats, averaged over the rows of the mask."""
    log_mean = ((first + second) / 2).clamp(min=MIN_WEIGHT).log()
    parts = [rows * (rows.clamp(min=MIN_WEIGHT).log() - log_mean) for rows in (first, second)]
    divergences = (parts[0].sum(-1) + parts[1].sum(-1)).clamp(min=0) / 2
    return (divergences * row_mask).sum(-1) / row_mask.sum(-1)


model_similarity_site = PairedSite(
    "attention.model_similarity",
    ("partner", "measure"),
    "cosine and divergence between the attention of two encoders: of the same head, and of the previous head",
    compare_attention,
    MEASURES,
)


@analysis(
    question="How similar is each head's attention in two models, for example before and after fine-tuning?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens), which renormalise.",
    citations=("kovaleva2019",),
    sites=lambda options: (STRONGEST_WORD,) if options["show"] == "functions" else (pattern_class_site(),),
    paired_sites=(model_similarity_site,),
    version=5,
    report_section="Effects of fine-tuning",
)
def model_similarity(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        ModelSimilarityView,
        "`heads`, `layers` (mean over heads), `pattern-classes` (heads whose most frequent class changed) or "
        "`functions` (heads that gained or lost a function; needs dependency trees).",
    ] = "heads",
    pattern_classifier: PatternClassifierOption = "rule",
    min_examples: Annotated[int, "Minimum number of examples for a relation to be a function."] = 20,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid | LayerCurve | Table:
    """Similarity of the attention of the same head in two models: cosine 1 equal, 0 disjoint; divergence 0 equal.

    - `cosine similarity`: of the two flattened patterns, as in Kovaleva et al. Their code flattens patterns padded to
      200 tokens, including rows of padding; here patterns are cropped to their length.
    - `Jensen-Shannon divergence`: in nats, averaged over rows. Rows without attention to non-special tokens are skipped
      in the measure (no special tokens).
    - `pattern class changed`: proportion of inputs whose pattern has another of the five classes of
      `attention/pattern_classes` (from 8 tokens).

    Cosines are high by default, since all heads that attend to [SEP] are alike: `different head of the layer` compares
    a head with the previous head of the same layer of the other model (the first with the last), `untrained model` with
    the same head before training; for pattern classes `chance` is the proportion that would differ if the two heads had
    these class proportions independently. Means are over inputs with equal weight. Both models must have the same
    number of layers and heads; their attention is compared in the pass and never stored. If they tokenise the text
    differently, attention between words is compared (attention to a word is the sum over its tokens, from a word the
    mean), with one position for [CLS] and one for all [SEP]; `texts compared word by word` is then in the sample, and
    pattern classes, which depend on the number of tokens, are those of each model's own tokens.
    """
    n_inputs = len(recording)
    recording, against = shared_inputs(recording, against)
    if randomised is not None:
        randomised, recording = shared_inputs(randomised, recording)
    if show == "functions":
        return function_changes(recording, against, min_examples=min_examples, seed=seed)
    sample = _describe_texts(recording, against, n_inputs - len(recording))
    classifier = PATTERN_CLASSIFIERS.index(pattern_classifier)

    def classes_of(model: Recording) -> FloatArray:
        return model.stack(pattern_class_site())[..., classifier, :].astype(np.float64)

    classes, against_classes = classes_of(recording), classes_of(against)
    if show == "pattern-classes":
        return _class_change_table(classes, against_classes, seed).model_copy(update={"sample": sample})
    similarity = recording.stack(model_similarity_site.storage_key)
    values = _append_class_change(similarity[..., 0, :], _class_change(classes, against_classes))
    baseline_values = {DIFFERENT_HEAD: similarity[..., 1, :]}
    if randomised is not None:
        untrained_similarity = randomised.stack(model_similarity_site.storage_key)[..., 0, :]
        class_change = _class_change(classes, classes_of(randomised))
        baseline_values[UNTRAINED_MODEL] = _append_class_change(untrained_similarity, class_change)
    chance = _chance_class_change(classes, against_classes)
    if show == "layers":
        values, chance = values.mean(2), chance.mean(1)
        baseline_values = {name: baseline.mean(2) for name, baseline in baseline_values.items()}
    measures = _estimate_measures(values, seed)
    baselines = {name: _estimate_measures(baseline, seed) for name, baseline in baseline_values.items()}
    baselines[CHANCE] = {CLASS_CHANGE: Estimates.exact(chance)}
    return curve_or_grid(show, measures, baselines, UNITS).model_copy(update={"sample": sample})


def _describe_texts(recording: Recording, against: Recording, n_skipped: int) -> dict[str, int]:
    """The number of texts compared word by word, and of those that only the first model could read."""
    counts = {
        "texts compared word by word": 0 if have_same_tokens(recording, against) else len(recording),
        "texts that only one model could read": n_skipped,
    }
    return {name: count for name, count in counts.items() if count}


def _append_class_change(values: Array, class_change: FloatArray) -> Array:
    """(input, layer, head, measure) values with the change of class as last measure."""
    return np.concatenate([values, class_change[..., None]], axis=-1)


def _estimate_measures(values: Array, seed: int) -> dict[str, Estimates]:
    estimates = bootstrap_mean(values, seed=seed).by_name((*MEASURES, CLASS_CHANGE)[: values.shape[-1]])
    if CLASS_CHANGE in estimates:
        estimates[CLASS_CHANGE] = exact_where_unanimous(estimates[CLASS_CHANGE])
    return estimates


def _class_change(first: FloatArray, second: FloatArray) -> FloatArray:
    """(input, layer, head): 1 if the classes differ, from one-hot (..., class); NaN for unclassified patterns."""
    return 1 - (first * second).sum(-1)


def _class_proportions(classes: FloatArray) -> FloatArray:
    """(layer, head, class) proportions of patterns; NaN without a classified pattern."""
    is_classified = np.isfinite(classes)
    sums, n = np.where(is_classified, classes, 0.0).sum(0), is_classified.sum(0)
    return np.where(is_classified.any(0), sums / np.maximum(1, n), np.nan)


def _chance_class_change(first: FloatArray, second: FloatArray) -> FloatArray:
    return 1 - (_class_proportions(first) * _class_proportions(second)).sum(-1)


def _class_change_table(first: FloatArray, second: FloatArray, seed: int) -> Table:
    """The heads whose most frequent class changed, the most changed first; without any, the most changed head."""
    proportions = _class_proportions(first), _class_proportions(second)
    change = exact_where_unanimous(bootstrap_mean(_class_change(first, second), seed=seed))
    before, after = (np.nan_to_num(values).argmax(-1) for values in proportions)
    changed = np.argwhere((before != after) & np.isfinite(change.value)).tolist()
    ordered = sorted(changed, key=lambda index: (-change.value[tuple(index)], index))
    most_changed = np.unravel_index(int(np.nan_to_num(change.value).argmax()), change.shape)
    heads = [Head(int(layer), int(head)) for layer, head in ordered or [most_changed]]
    indices = tuple(np.array(heads).T)
    note = "No head changed its most frequent class; this head changed most."
    return Table(
        measures={CLASS_CHANGE: change[indices]},
        baselines={CHANCE: {CLASS_CHANGE: Estimates.exact(_chance_class_change(first, second)[indices])}},
        units={CLASS_CHANGE: UNITS[CLASS_CHANGE]},
        row_names=tuple(map(str, heads)),
        attributes={
            **head_attributes(heads),
            "class_before": tuple(PATTERN_CLASSES[before[head]] for head in heads),
            "proportion_before": tuple(float(proportions[0][head][before[head]]) for head in heads),
            "class_after": tuple(PATTERN_CLASSES[after[head]] for head in heads),
            "proportion_after": tuple(float(proportions[1][head][after[head]]) for head in heads),
        },
        notes={} if ordered else {str(heads[0]): note},
    )
