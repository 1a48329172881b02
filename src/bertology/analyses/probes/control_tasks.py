"""Selectivity of probes by layer and architecture: accuracy minus accuracy on a control task (hewitt2019control)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.answers import probe_answers
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset, task_datasets
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    ProbePredictions,
    accuracy,
    accuracy_difference,
    control_labels,
    fit_and_predict,
    majority_baseline,
    majority_by_type,
    parse_probe,
)
from bertology.analyses.probing.options import MinExamplesOption
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.probing.word_labels import LabelOption, check_word_label, word_task
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Matrix

ACCURACY, CONTROL, SELECTIVITY = "accuracy", "control-task accuracy", "selectivity"
MAJORITY, MAJORITY_OF_WORD = "majority class", "most frequent label of the word"
CONTROL_TASK, UNTRAINED = "control task", "untrained model"
PredictionPair = tuple[ProbePredictions, ProbePredictions]


@analysis(
    question="How selective are probes of different capacity: accuracy minus accuracy on a control task?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("hewitt2019control",),
    sites=(WORD_SITE,),
    check_corpus=check_word_label,
    version=4,
    answers=True,
)
def control_tasks(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: LabelOption = "pos",
    probes: Annotated[
        str,
        "Probe architectures to compare, comma-separated: linear, rank:N, mlp:N, mlp:N:N; N: hidden units.",
    ] = "rank:10,linear,mlp:10,mlp:50",
    min_examples: MinExamplesOption = 10,
    split: TrainTestSplit = TrainTestSplit(),
) -> Matrix:
    """Accuracy minus control-task accuracy, -1 to 1, by layer and probe; 0 if the probe could have memorised it all.

    In the control task every word form has one random label, in training and test data alike, in the proportions of the
    training labels, so that it can be learned only by memorising forms. Forms not seen in training can only be guessed.
    A probe with high accuracy on the labels and low accuracy on control labels shows what the states encode; one with
    high accuracy on both may have memorised. Rank and hidden units are the paper's `maximum_rank` and hidden sizes,
    of which it uses {2, 4, 10, 45, 1000}. Its probes are trained with Adam for at most 40 epochs, halving the learning
    rate whenever the loss on the development set rises; here they are trained by L-BFGS on full batches, and validation
    documents determine when to stop (linear probes: the L2 penalty). Intervals are over test sentences and seeds.
    """
    names = [name.strip() for name in probes.split(",") if name.strip()]
    configs = {name: ProbeConfig(parse_probe(name), split.seeds) for name in names or ["linear"]}
    name = f"probes/control_tasks --label {label}"
    dataset, untrained = task_datasets(
        recording, randomised, encoder, word_task(label, recording.corpus), split, min_examples, analysis_name=name
    )
    predictions = {name: fit_and_predict(dataset, config) for name, config in configs.items()}
    rules = {MAJORITY: majority_baseline(dataset), MAJORITY_OF_WORD: majority_by_type(dataset)}
    measures = _measure_probes(dataset, predictions, split.seed)
    shape = measures[ACCURACY].shape
    majority, majority_of_word = (accuracy(dataset, rule, split.seed).broadcast_to(shape) for rule in rules.values())
    majority_of_control = accuracy(dataset, _majority_control_label(dataset, split.seeds), split.seed)
    baselines = {
        MAJORITY: {ACCURACY: majority, CONTROL: majority_of_control.broadcast_to(shape)},
        MAJORITY_OF_WORD: {ACCURACY: majority_of_word},
        "zero": {SELECTIVITY: Estimates.exact(np.zeros(shape))},
    }
    untrained_predictions: dict[str, PredictionPair] = {}
    if untrained is not None:
        untrained_predictions = {name: fit_and_predict(untrained, config) for name, config in configs.items()}
        baselines[UNTRAINED] = _measure_probes(untrained, untrained_predictions, split.seed)

    def answers() -> Iterator[Answer]:
        """The predictions of each probe for labels and control labels, and those of the baselines."""
        for name, (labels, control) in predictions.items():
            series = {MODEL_SERIES: labels, CONTROL_TASK: control}
            if name in untrained_predictions:
                series |= {UNTRAINED: untrained_predictions[name][0]}
            for answer in probe_answers(dataset, series, split.seeds):
                yield {"probe": name} | answer
        for answer in probe_answers(dataset, rules, split.seeds):
            yield {"probe": None} | answer

    matrix = Matrix(
        measures=measures,
        baselines=baselines,
        units={
            ACCURACY: "proportion of words, 0 to 1",
            CONTROL: "proportion of words, 0 to 1",
            SELECTIVITY: "accuracy minus control-task accuracy, -1 to 1",
        },
        sample=dataset.sample,
        row_names=tuple(f"layer {layer}" for layer in range(shape[0])),
        column_names=tuple(configs),
    )
    return matrix.with_answers(answers)


def _measure_probes(
    dataset: ProbeDataset, predictions_by_probe: dict[str, PredictionPair], seed: int
) -> dict[str, Estimates]:
    """(layer, probe) estimates of each measure."""
    columns: dict[str, list[Estimates]] = {ACCURACY: [], CONTROL: [], SELECTIVITY: []}
    for predictions, control in predictions_by_probe.values():
        columns[ACCURACY].append(accuracy(dataset, predictions, seed))
        columns[CONTROL].append(accuracy(dataset, control, seed))
        columns[SELECTIVITY].append(accuracy_difference(dataset, [predictions], [control], seed))
    return {name: Estimates.stack(by_probe, axis=1) for name, by_probe in columns.items()}


def _majority_control_label(dataset: ProbeDataset, seeds: tuple[int, ...]) -> ProbePredictions:
    """The most frequent control label of the training data for every example, by seed."""
    train, gold = (control_labels(dataset, examples.control_types, seeds) for examples in (dataset.train, dataset.test))
    most_frequent = np.array([np.bincount(labels).argmax() for labels in train])
    return ProbePredictions(np.broadcast_to(most_frequent[None, :, None], (1, *gold.shape)), gold)
