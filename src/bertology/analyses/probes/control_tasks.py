"""Selectivity of probes by layer and architecture: accuracy minus accuracy on a control task (hewitt2019control)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset, task_datasets
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    accuracy,
    fit_and_predict,
    majority_baseline,
    majority_by_type,
    parse_probe,
    selectivity,
)
from bertology.analyses.probing.options import MinExamplesOption
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.probing.word_labels import WORD_LABELS, LabelOption
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.results.shapes import Matrix

ACCURACY, CONTROL, SELECTIVITY = "accuracy", "control-task accuracy", "selectivity"


@analysis(
    question="How selective are probes of different capacity: accuracy minus accuracy on a control task?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("hewitt2019control",),
    sites=(WORD_SITE,),
    version=3,
)
def control_tasks(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: LabelOption = "upos",
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
        recording, randomised, encoder, WORD_LABELS[label], split, min_examples, analysis_name=name
    )
    measures = _measure_probes(dataset, configs)
    shape = measures[ACCURACY].shape
    majority, majority_of_word = (
        accuracy(dataset, rule(dataset), split.seed).broadcast_to(shape)
        for rule in (majority_baseline, majority_by_type)
    )
    baselines = {
        "majority class": {ACCURACY: majority, CONTROL: majority},
        "most frequent label of the word": {ACCURACY: majority_of_word},
        "zero": {SELECTIVITY: Estimates.exact(np.zeros(shape))},
    }
    if untrained is not None:
        baselines["untrained model"] = _measure_probes(untrained, configs)
    return Matrix(
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


def _measure_probes(dataset: ProbeDataset, configs: dict[str, ProbeConfig]) -> dict[str, Estimates]:
    """(layer, probe) estimates of each measure."""
    columns: dict[str, list[Estimates]] = {ACCURACY: [], CONTROL: [], SELECTIVITY: []}
    for config in configs.values():
        predictions, control = fit_and_predict(dataset, config)
        columns[ACCURACY].append(accuracy(dataset, predictions, config.seeds[0]))
        columns[CONTROL].append(accuracy(dataset, control, config.seeds[0]))
        columns[SELECTIVITY].append(selectivity(dataset, predictions, control, config.seeds[0]))
    return {name: Estimates.stack(by_probe, axis=1) for name, by_probe in columns.items()}
