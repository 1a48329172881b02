"""Antecedent confusion: does attention find the antecedent of a word among distractors (Lin et al. 2019)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, curve_or_grid, uniform_baseline
from bertology.analyses.head_selection.answers import input_name, input_text
from bertology.analyses.heads.antecedent_confusion.stimuli import Stimulus, parse_stimulus, target_and_candidates
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.encoder.token_batch import TokenBatch
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.regression import least_squares
from bertology.estimates.resampling import bootstrap_mean
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

AntecedentConfusionView = Literal["conditions", "layers", "heads", "regression"]

CONFUSION, COEFFICIENT = "confusion", "coefficient"
UNIT = "bits, 0: only the antecedent, log2(candidates): all candidates equally"
MIN_WEIGHT = 2.0**-126
"""The smallest share distinguished from none, that of float32: a head that ignores the antecedent has 126 bits."""

REGRESSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "agreement": ("agreement", ("relative clause", "inflected auxiliary", "distractor matches")),
    "agreement by distance": ("agreement", ("distance", "inflected auxiliary", "distractor matches")),
    "reflexive": (
        "reflexive",
        ("relative clause", "noun in relative clause", "distractor matches", "object", "object matches"),
    ),
    "reflexive by distance": ("reflexive", ("distance", "distractors", "matching distractors")),
    "other": ("", ("distance", "distractors")),
}
"""Name -> phenomenon and factors. Distance follows from the structure in this design, hence separate regressions."""


class _StimulusWeights(NamedTuple):
    """(batch, token) weights of the target's tokens; (batch, token, 2) flags of antecedent and of all candidates."""

    sources: Tensor
    targets: Tensor


def _prepare(batch: TokenBatch) -> _StimulusWeights:
    sources = np.zeros((len(batch.inputs), batch.padded_length), np.float32)
    targets = np.zeros((len(batch.inputs), batch.padded_length, 2), np.float32)
    for row, recorded_input in enumerate(batch.inputs):
        marked = target_and_candidates(recorded_input)
        if marked is None:
            continue
        target, candidates = marked
        tokens = recorded_input.tokens.positions_by_word()
        target_tokens = [token for word in target for token in tokens[word]]
        sources[row, target_tokens] = 1 / len(target_tokens)
        for index, words in enumerate(candidates):
            targets[row, [token for word in words for token in tokens[word]], min(index, 1) :] = 1
    return _StimulusWeights(*(torch.from_numpy(array).to(batch.device) for array in (sources, targets)))


@reduction(
    "heads.confusion",
    axes=("candidate",),
    labels=("antecedent", "candidates"),
    description="attention from the target to the words of its antecedent, and to those of all candidates",
    prepare=_prepare,
)
def confusion_site(layer: LayerActivations, batch: TokenBatch, stimulus_weights: _StimulusWeights) -> Tensor:
    """(batch, head, 2) attention; 0 if nothing is marked."""
    attention = layer.attention
    rows = (stimulus_weights.sources.to(attention.dtype)[:, None, None] @ attention).squeeze(-2)
    return rows @ stimulus_weights.targets.to(attention.dtype)


@analysis(
    question="Does attention from an auxiliary or reflexive find its antecedent among distractor nouns?",
    special_tokens="Special tokens: excluded as sources and targets. Only candidate noun phrases are compared.",
    citations=("lin2019",),
    sites=(confusion_site,),
    annotations=("marked_words",),
    version=2,
    answers=("conditions", "layers", "heads"),
)
def antecedent_confusion(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        AntecedentConfusionView,
        "`conditions`: mean over layers per condition; `layers` or `heads`: per condition and layer or head; "
        "`regression`: coefficients of the experimental factors.",
    ] = "conditions",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> Table | LayerCurve | HeadGrid:
    """Confusion in bits: 0 attends only to the antecedent, log2(candidates) to all candidates equally, above misses it.

    Minus the base-2 logarithm of the antecedent's share of the attention that the target (an agreeing auxiliary or a
    reflexive) gives to the candidate noun phrases, determiner and noun together. By condition and by layer, the
    attention of the heads is averaged first, as in the paper; by head, each head is measured alone. Sentences without a
    distractor have no confusion and are skipped, as are heads that attend to no candidate. The published number of a
    condition is the mean over layers and sentences. Agreement conditions are reported together and separately for modal
    and inflected auxiliaries, since the paper does not say which it pools. `equal over candidates` attends equally to
    every noun phrase, `uniform attention` to every visible token.

    With --show regression: coefficients in bits of a linear regression over sentences and layers, with t intervals
    from standard errors clustered by sentence. In this design distance follows from the structure (a clause takes
    words), so it replaces structure in separate regressions. Factors are 0 or 1 except layer, distance and numbers of
    distractors; in the published R3 and R4 half of the distractors are objects after an intransitive clause.
    """
    stimuli = [parse_stimulus(recorded_input, recording.corpus) for recorded_input in recording.inputs]
    if not any(stimulus and stimulus.has_distractor for stimulus in stimuli):
        raise Refusal(
            f"No sentence of {recording.corpus.name} marks a target, its antecedent and a distractor",
            "stimuli with distractors",
            "Use for example --corpus generated:reflexives, or files of Open Sesame",
        )
    if show == "regression":
        return _build_regression_table(recording, randomised, stimuli)
    per_head = show == "heads"
    scores = _confusion_bits(recording.stack(confusion_site), stimuli, per_head)
    baseline_scores: dict[str, FloatArray] = {}
    if randomised is not None:
        baseline_scores[UNTRAINED_MODEL] = _confusion_bits(randomised.stack(confusion_site), stimuli, per_head)
    uniform = _confusion_bits(uniform_baseline(recording, confusion_site)[:, :, None], stimuli, per_head)
    baseline_scores[UNIFORM_ATTENTION] = np.broadcast_to(uniform, scores.shape)
    equal = np.array([np.log2(len(s.candidates)) if s and s.has_distractor else np.nan for s in stimuli])
    baseline_scores["equal over candidates"] = np.broadcast_to(
        equal.reshape(-1, *[1] * (scores.ndim - 1)), scores.shape
    )
    by_series = {MODEL_SERIES: scores, **baseline_scores}
    if show == "conditions":
        table = _build_condition_table(scores, baseline_scores, stimuli, seed)
        return table.with_answers(lambda: _answers(recording, stimuli, by_series))
    measures = _estimate_groups(scores, stimuli, seed)
    baselines = {name: _estimate_groups(values, stimuli, seed) for name, values in baseline_scores.items()}
    result = curve_or_grid(show, measures, baselines, dict.fromkeys(measures, UNIT))
    return result.with_answers(lambda: _answers(recording, stimuli, by_series))


def _answers(
    recording: Recording, stimuli: list[Stimulus | None], by_series: Mapping[str, FloatArray]
) -> Iterator[Answer]:
    """The confusion in each sentence, by series, layer and, with one value per head, head."""
    for index, (recorded_input, stimulus) in enumerate(zip(recording.inputs, stimuli, strict=True)):
        if stimulus is None or not stimulus.has_distractor:
            continue
        words = recorded_input.text.words
        item = {
            "item": input_name(recorded_input),
            "text": input_text(recorded_input),
            "word": " ".join(words[word] for word in stimulus.target),
            "gold": " ".join(words[word] for word in stimulus.antecedent),
            "condition": stimulus.condition,
        }
        for series, values in by_series.items():
            bits = values[index].reshape(values.shape[1], -1)
            for layer, head in np.argwhere(np.isfinite(bits)).tolist():
                name = str(Head(layer, head)) if values.ndim > 2 else None
                yield item | {"series": series, "layer": layer + 1, "head": name, CONFUSION: float(bits[layer, head])}


def _confusion_bits(weights: Array, stimuli: list[Stimulus | None], per_head: bool) -> FloatArray:
    """(input, layer) or (input, layer, head) confusion from (input, layer, head, 2) attention; NaN if undefined."""
    sums = weights.astype(np.float64)
    sums = sums if per_head else sums.mean(2)
    has_distractor = np.array([stimulus is not None and stimulus.has_distractor for stimulus in stimuli])
    defined = (sums[..., 1] > 0) & has_distractor.reshape(-1, *[1] * (sums.ndim - 2))
    shares = np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=defined)
    return -np.log2(np.clip(shares, MIN_WEIGHT, 1.0)) + 0.0  # plus 0: no minus zero


def _stimulus_groups(stimuli: list[Stimulus | None]) -> dict[str, BoolArray]:
    """A mask of the inputs of each group."""
    names = sorted({name for stimulus in stimuli if stimulus and stimulus.has_distractor for name in stimulus.groups})
    return {name: np.array([s is not None and name in s.groups for s in stimuli]) for name in names}


def _build_condition_table(
    scores: FloatArray, baseline_scores: dict[str, FloatArray], stimuli: list[Stimulus | None], seed: int
) -> Table:
    groups = _stimulus_groups(stimuli)

    def estimate(values: FloatArray) -> dict[str, Estimates]:
        means = [bootstrap_mean(values[mask].mean(1), seed=seed) for mask in groups.values()]
        return {CONFUSION: Estimates.stack(means)}

    return Table(
        measures=estimate(scores),
        baselines={name: estimate(values) for name, values in baseline_scores.items()},
        units={CONFUSION: UNIT},
        row_names=tuple(groups),
    )


def _estimate_groups(scores: FloatArray, stimuli: list[Stimulus | None], seed: int) -> dict[str, Estimates]:
    return {name: bootstrap_mean(scores[mask], seed=seed) for name, mask in _stimulus_groups(stimuli).items()}


def _build_regression_table(
    recording: Recording, randomised: Recording | None, stimuli: list[Stimulus | None]
) -> Table:
    rows, coefficients = _coefficients(recording, stimuli)
    baselines = {"zero": {COEFFICIENT: Estimates.exact(np.zeros(len(rows)))}}
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = {COEFFICIENT: _coefficients(randomised, stimuli)[1]}
    units = {COEFFICIENT: "bits per unit of the factor"}
    return Table(measures={COEFFICIENT: coefficients}, baselines=baselines, units=units, row_names=tuple(rows))


def _coefficients(recording: Recording, stimuli: list[Stimulus | None]) -> tuple[list[str], Estimates]:
    scores = _confusion_bits(recording.stack(confusion_site), stimuli, per_head=False)
    layers = np.arange(1, scores.shape[1] + 1)
    rows: list[str] = []
    estimates: list[Estimates] = []
    for name, (phenomenon, factors) in REGRESSIONS.items():
        designs = {
            index: stimulus.design()
            for index, stimulus in enumerate(stimuli)
            if stimulus and stimulus.has_distractor and stimulus.phenomenon == phenomenon
        }
        if not designs:
            continue
        values = np.array([[design[factor] for factor in factors] for design in designs.values()])
        design_matrix = np.column_stack(
            [
                np.ones(len(designs) * len(layers)),
                np.tile(layers, len(designs)),
                np.repeat(values, len(layers), axis=0),
            ]
        )
        response = scores[list(designs)].ravel()
        clusters = np.repeat(np.arange(len(designs)), len(layers))
        mask = np.isfinite(response)
        fit = least_squares(design_matrix[mask], response[mask], clusters=clusters[mask])
        n = np.where(np.isfinite(fit.coefficients), len(np.unique(clusters[mask])), 0)
        rows += [f"{name}: {factor}" for factor in ("intercept", "layer", *factors)]
        estimates.append(Estimates(value=fit.coefficients, low=fit.low, high=fit.high, n=n, interval="t"))
    return rows, Estimates.concatenate(estimates)
