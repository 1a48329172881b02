"""Probe each layer for a property of words: part of speech, relation, entity, role (liu2019, hewitt2019control)."""

from __future__ import annotations

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.dataset import WORD_SITE, task_datasets
from bertology.analyses.probing.fitting import ProbeConfig, parse_probe
from bertology.analyses.probing.layer_curves import probe_curve
from bertology.analyses.probing.options import MinExamplesOption, ProbeOption
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.probing.word_labels import LabelOption, check_word_label, word_task
from bertology.encoder.encoder import Encoder
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve


@analysis(
    question="How well can a word's part of speech, relation or other label be predicted from each layer?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("liu2019", "hewitt2019control", "voita2020"),
    sites=(WORD_SITE,),
    check_corpus=check_word_label,
    version=5,
    cost=Cost(seconds_per_sampled_word=0.015),
    answers=True,
)
def word(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: LabelOption = "pos",
    probe: ProbeOption = "linear",
    min_examples: MinExamplesOption = 10,
    split: TrainTestSplit = TrainTestSplit(),
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
    most frequent label; the most frequent label of the word form; the untrained model; the control task. Intervals are
    over test sentences and seeds, those of compression over sentences of the message and seeds.

    `accuracy - accuracy (half the training data)` is what the second half of the training sentences adds, on the same
    test sentences: the probe of the other half is that of the last portion of the online code. While it is not close to
    0, accuracy and selectivity say little about the model, as probes still learn.
    """
    config = ProbeConfig(parse_probe(probe), split.seeds)
    name = f"probes/word --label {label}"
    datasets = task_datasets(
        recording, randomised, encoder, word_task(label, recording.corpus), split, min_examples, analysis_name=name
    )
    return probe_curve(*datasets, config, unit_name="words", control_type="word")
