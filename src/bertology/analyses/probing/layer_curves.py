"""The result of probing each layer for one label: accuracy, macro F1, selectivity and compression with baselines."""

from __future__ import annotations

import numpy as np

from bertology.analyses.probing.code_length import online_code_length
from bertology.analyses.probing.dataset import ProbeDataset
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    ProbePredictions,
    accuracy,
    fit_and_predict,
    macro_f1,
    majority_baseline,
    majority_by_type,
    selectivity,
)
from bertology.arrays import Array
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
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
    bits, n_labels = online_code_length(dataset, config)
    measures = _prediction_scores(dataset, predictions, seed) | {
        SELECTIVITY: selectivity(dataset, predictions, control, seed),
        COMPRESSION: compression(dataset, bits[0], n_labels),
    }
    shape = (len(predictions.predicted),)
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, rule in (
        (MAJORITY, majority_baseline(dataset)),
        (f"most frequent label of the {control_type}", majority_by_type(dataset)),
    ):
        scores = _prediction_scores(dataset, rule, seed)
        baselines[name] = {measure: estimates.broadcast_to(shape) for measure, estimates in scores.items()}
    baselines[CONTROL_TASK] = {
        ACCURACY: accuracy(dataset, control, seed),
        COMPRESSION: compression(dataset, bits[1], n_labels),
        SELECTIVITY: Estimates.exact(np.zeros(shape)),
    }
    baselines[LABEL_FREQUENCY_CODE] = {COMPRESSION: Estimates.exact(np.full(shape, unigram_compression(dataset)))}
    if randomised is not None:
        predictions, control = fit_and_predict(randomised, config)
        baselines[UNTRAINED] = _prediction_scores(randomised, predictions, seed) | {
            SELECTIVITY: selectivity(randomised, predictions, control, seed)
        }
    units = {
        ACCURACY: f"proportion of {unit_name}, 0 to 1",
        F1: "mean F1 over labels, 0 to 1",
        SELECTIVITY: "accuracy minus control-task accuracy, -1 to 1",
        COMPRESSION: COMPRESSION_UNIT,
    }
    return LayerCurve(measures=measures, baselines=baselines, units=units, sample=dataset.sample)


def compression(dataset: ProbeDataset, bits: Array, n_labels: Array) -> Estimates:
    """(layer,) length of the uniform code of (seed,) labels divided by (seed, layer) bits."""
    return range_over_seeds(n_labels[:, None] * np.log2(len(dataset.labels)) / bits)


def unigram_compression(dataset: ProbeDataset) -> float:
    """The compression of a code that knows the frequency of each label, but no hidden states."""
    proportions = np.diff([0.0, *dataset.label_boundaries, 1.0])
    return float(np.log2(len(proportions)) / -(proportions * np.log2(proportions)).sum())


def _prediction_scores(dataset: ProbeDataset, predictions: ProbePredictions, seed: int) -> dict[str, Estimates]:
    return {ACCURACY: accuracy(dataset, predictions, seed), F1: macro_f1(dataset, predictions, seed)}
