"""Selectivity of probes by layer and architecture: accuracy minus accuracy on a control task (hewitt2019control)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    accuracy,
    fit_and_predict,
    majority_baseline,
    majority_by_type,
    probe_config,
    selectivity,
)
from bertology.analyses.probing.options import (
    MaxTrainSizeOption,
    MinExamplesOption,
    NSeedsOption,
    SeedOption,
    TrainCorpusOption,
    TrainFractionOption,
)
from bertology.analyses.probing.train_test_split import TrainTestSplit, randomised_encoder
from bertology.analyses.probing.word_labels import LabelOption, word_dataset
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.results.shapes import Matrix

NAME = "probes/control_tasks"
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
    train_corpus: TrainCorpusOption = "",
    train_size: MaxTrainSizeOption = 0,
    train_fraction: TrainFractionOption = 0.7,
    n_seeds: NSeedsOption = 3,
    seed: SeedOption = 0,
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
    split = TrainTestSplit(train_corpus, train_size, train_fraction, seed)
    names = [name.strip() for name in probes.split(",") if name.strip()]
    configs = {name: probe_config(name, n_seeds, seed) for name in names or ["linear"]}
    dataset = word_dataset(recording, encoder, split, label, min_examples, analysis_name=NAME)
    measures = _measure_probes(dataset, configs, seed)
    shape = measures[ACCURACY].shape
    majority = accuracy(dataset, majority_baseline(dataset), seed).broadcast_to(shape)
    majority_of_word = accuracy(dataset, majority_by_type(dataset), seed).broadcast_to(shape)
    baselines = {
        "majority class": {ACCURACY: majority, CONTROL: majority},
        "most frequent label of the word": {ACCURACY: majority_of_word},
        "zero": {SELECTIVITY: Estimates.exact(np.zeros(shape))},
    }
    if randomised is not None:
        model = randomised_encoder(encoder)
        untrained = word_dataset(randomised, model, split, label, min_examples, analysis_name=NAME)
        baselines["untrained model"] = _measure_probes(untrained, configs, seed)
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


def _measure_probes(dataset: ProbeDataset, configs: dict[str, ProbeConfig], seed: int) -> dict[str, Estimates]:
    """(layer, probe) estimates of each measure."""
    columns: dict[str, list[Estimates]] = {ACCURACY: [], CONTROL: [], SELECTIVITY: []}
    for config in configs.values():
        predictions, control = fit_and_predict(dataset, config)
        columns[ACCURACY].append(accuracy(dataset, predictions, seed))
        columns[CONTROL].append(accuracy(dataset, control, seed))
        columns[SELECTIVITY].append(selectivity(dataset, predictions, control, seed))
    n_layers = len(dataset.train.features)
    return {
        name: Estimates.stack([Estimates.stack([column[layer] for column in by_probe]) for layer in range(n_layers)])
        for name, by_probe in columns.items()
    }
