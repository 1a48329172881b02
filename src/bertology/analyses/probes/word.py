"""Probe each layer for a property of words: part of speech, relation, entity, role (liu2019, hewitt2019control)."""

from __future__ import annotations

from typing import Annotated

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.fitting import probe_config
from bertology.analyses.probing.layer_curves import probe_curve
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
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

NAME = "probes/word"


@analysis(
    question="How well can a word's part of speech, relation or other label be predicted from each layer?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("liu2019", "hewitt2019control", "voita2020"),
    sites=(WORD_SITE,),
    version=3,
    cost=Cost(seconds_per_sampled_word=0.015),
)
def word(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: LabelOption = "upos",
    probe: Annotated[str, "Probe architecture: linear, rank:N, mlp:N or mlp:N:N; N: hidden units."] = "linear",
    min_examples: MinExamplesOption = 10,
    train_corpus: TrainCorpusOption = "",
    train_size: MaxTrainSizeOption = 0,
    train_fraction: TrainFractionOption = 0.7,
    n_seeds: NSeedsOption = 3,
    seed: SeedOption = 0,
) -> LayerCurve:
    """Accuracy of a probe for a property of words, 0 to 1, by layer.

    A probe is a classifier on the vector of a word at one layer, the mean of its tokens (Liu et al. use the last token,
    Hewitt & Liang the mean). Linear probes solve the penalised objective to convergence with four L2 penalties, whose
    predictions are averaged by the likelihood of the labels of validation documents. Training, validation and test data
    are different documents where documents are known, else different sentences. All layers, seeds and labellings are
    fitted together. Labels: `relation` is without its subtype; `entity`, `chunk`, `role` and `mention` are those of the
    shortest span around the word, O outside.

    `selectivity` is the accuracy minus that of the same probe on a control task, in which every word form has one
    random label wherever it occurs, in the proportions of the training labels; forms not seen in training can only be
    guessed, in both tasks. `compression` is that of the online code (see probes/description_length). Baselines: the
    most frequent label; the most frequent label of the word form; the untrained model; the control task. Intervals of
    the first three measures are over test sentences and seeds; that of compression is the range over seeds.
    """
    config = probe_config(probe, n_seeds, seed)
    split = TrainTestSplit(train_corpus, train_size, train_fraction, seed)
    dataset = word_dataset(recording, encoder, split, label, min_examples, analysis_name=NAME)
    untrained = None
    if randomised is not None:
        model = randomised_encoder(encoder)
        untrained = word_dataset(randomised, model, split, label, min_examples, analysis_name=NAME)
    return probe_curve(dataset, untrained, config, seed=seed, unit_name="words", control_type="word")
