"""The result of probing each layer for one label: accuracy, macro F1, selectivity and compression with baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertology.analyses.probing.answers import probe_answers
from bertology.analyses.probing.code_length import online_code_length
from bertology.analyses.probing.dataset import ProbeDataset
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    ProbePredictions,
    accuracy,
    accuracy_difference,
    fit_and_predict,
    macro_f1,
    majority_baseline,
    majority_by_type,
)
from bertology.estimates.estimate import Estimates
from bertology.results.measured_shape import MODEL_SERIES, gain_measure
from bertology.results.shapes import LayerCurve

ACCURACY, F1, SELECTIVITY, COMPRESSION = "accuracy", "macro F1", "selectivity", "compression"
COMPRESSION_UNIT = "ratio of the uniform code's length to this code's (1: uninformative)"
MAJORITY, CONTROL_TASK, UNTRAINED = "majority class", "control task", "untrained model"
LABEL_FREQUENCY_CODE = "label frequency code"


def probe_curve(
    dataset: ProbeDataset,
    randomised: ProbeDataset | None,
    config: ProbeConfig,
    *,
    unit_name: str,
    control_type: str,
) -> LayerCurve:
    """All measures of a probe by layer, with their baselines.

    `randomised` is the same dataset on the untrained model; `unit_name` names what is labelled ("words"), and
    `control_type` what a control label belongs to ("word").
    """
    seed = config.seeds[0]
    predictions, control = fit_and_predict(dataset, config)
    code = online_code_length(dataset, config)
    n_classes, shape = len(dataset.labels), (len(predictions.predicted),)
    measures = _prediction_scores(dataset, predictions, seed) | {
        SELECTIVITY: accuracy_difference(dataset, [predictions], [control], seed),
        COMPRESSION: code.compression(0, n_classes, seed),
    }
    measures |= _gains(dataset, (predictions, control), code.half_predictions, seed)
    baselines: dict[str, dict[str, Estimates]] = {}
    by_series = {MODEL_SERIES: predictions, CONTROL_TASK: control}
    for name, rule in (
        (MAJORITY, majority_baseline(dataset)),
        (f"most frequent label of the {control_type}", majority_by_type(dataset)),
    ):
        by_series[name] = rule
        scores = _prediction_scores(dataset, rule, seed)
        baselines[name] = {measure: estimates.broadcast_to(shape) for measure, estimates in scores.items()}
    baselines[CONTROL_TASK] = {
        ACCURACY: accuracy(dataset, control, seed),
        COMPRESSION: code.compression(1, n_classes, seed),
        SELECTIVITY: Estimates.exact(np.zeros(shape)),
    }
    baselines[LABEL_FREQUENCY_CODE] = {COMPRESSION: Estimates.exact(np.full(shape, unigram_compression(dataset)))}
    if randomised is not None:
        predictions, control = fit_and_predict(randomised, config)
        by_series[UNTRAINED] = predictions
        code = online_code_length(randomised, config, control=False)
        baselines[UNTRAINED] = _prediction_scores(randomised, predictions, seed) | {
            SELECTIVITY: accuracy_difference(randomised, [predictions], [control], seed),
            COMPRESSION: code.compression(0, n_classes, seed),
        }
        baselines[UNTRAINED] |= _gains(randomised, (predictions, control), code.half_predictions, seed)
    gain_names = [name for name in (gain_measure(ACCURACY), gain_measure(SELECTIVITY)) if name in measures]
    if gain_names:
        baselines["zero"] = {name: Estimates.exact(np.zeros(shape)) for name in gain_names}
    units = {
        ACCURACY: f"proportion of {unit_name}, 0 to 1",
        F1: "mean F1 over labels, 0 to 1",
        SELECTIVITY: "accuracy minus control-task accuracy, -1 to 1",
        COMPRESSION: COMPRESSION_UNIT,
    } | dict.fromkeys(gain_names, "difference, -1 to 1")
    curve = LayerCurve(measures=measures, baselines=baselines, units=units, sample=dataset.sample)
    return curve.with_answers(lambda: probe_answers(dataset, by_series, config.seeds))


def _gains(
    dataset: ProbeDataset,
    predictions: tuple[ProbePredictions, ProbePredictions],
    half_predictions: Sequence[ProbePredictions],
    seed: int,
) -> dict[str, Estimates]:
    """What the second half of the training data adds to accuracy and, with control labels in both, to selectivity."""
    gains: dict[str, Estimates] = {}
    if half_predictions:
        task, half_task = predictions[0], half_predictions[0]
        gains[gain_measure(ACCURACY)] = accuracy_difference(dataset, [task], [half_task], seed)
    if len(half_predictions) == len(predictions):
        (task, control), (half_task, half_control) = predictions, half_predictions
        gains[gain_measure(SELECTIVITY)] = accuracy_difference(
            dataset, [task, half_control], [control, half_task], seed
        )
    return gains


def unigram_compression(dataset: ProbeDataset) -> float:
    """The compression of a code that knows the frequency of each label, but no hidden states."""
    proportions = np.diff([0.0, *dataset.label_boundaries, 1.0])
    return float(np.log2(len(proportions)) / -(proportions * np.log2(proportions)).sum())


def _prediction_scores(dataset: ProbeDataset, predictions: ProbePredictions, seed: int) -> dict[str, Estimates]:
    return {ACCURACY: accuracy(dataset, predictions, seed), F1: macro_f1(dataset, predictions, seed)}
