"""Description length of labels given the hidden states of a layer, by online and variational codes (voita2020)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.code_length import online_code_length, variational_code_length
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset, task_datasets
from bertology.analyses.probing.fitting import ProbeConfig, parse_probe
from bertology.analyses.probing.layer_curves import (
    COMPRESSION_UNIT,
    CONTROL_TASK,
    LABEL_FREQUENCY_CODE,
    UNTRAINED,
    unigram_compression,
)
from bertology.analyses.probing.options import MinExamplesOption
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.probing.word_labels import LabelOption, check_word_label, word_task
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

ONLINE, VARIATIONAL = CODES = ("online", "variational")
LENGTHS = {code: f"{code} code length" for code in CODES}
COMPRESSIONS = {code: f"compression ({code})" for code in CODES}
MAX_WORK = 4e7
"""Words times layers times width times seeds of a message: about three minutes of one core, with the baselines."""


@analysis(
    question="How many bits per label does a probe of each layer need (minimum description length)?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("voita2020", "louizos2017"),
    sites=(WORD_SITE,),
    check_corpus=check_word_label,
    version=4,
    cost=Cost(seconds_per_sampled_word=0.03),
)
def description_length(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: LabelOption = "pos",
    probe: Annotated[str, "Probe architecture: linear, mlp:N or mlp:N:N; N: hidden units."] = "linear",
    min_examples: MinExamplesOption = 10,
    sample_size: Annotated[
        int | Literal["auto"],
        Ge(0),
        "Send the labels of a random sample of this many training sentences (0: all); `auto`: all, or as many as take "
        "about three minutes.",
    ] = "auto",
    legacy: Annotated[
        bool,
        "Reproduce the released code: cross-entropies in nats are compared with a uniform code in bits.",
    ] = False,
    split: TrainTestSplit = TrainTestSplit(),
) -> LayerCurve:
    """Bits per label with a probe of each layer, from near 0 to log2 of the number of labels and above.

    Online code: sentences are sent in portions up to 0.1 %, 0.2 % and so on to 100 %. Labels of the first portion use
    the uniform code, those of each further portion a probe fitted on all portions before. Validation documents, which
    are not part of the message, determine penalties or early stopping. A probe of n words has the weight n / (n + 1)
    against the uniform distribution, because a probe of very few words would be overconfident. Variational code: the
    divergence of a probe's weights from their prior plus the expected cross-entropy, with a factor per unit that can
    switch it off (Louizos et al. 2017). Compression is the length of the uniform code divided by that of the code; 1 if
    the states are uninformative.

    The labels sent are the training labels of probes/word, so that the numbers of both can be compared; with the
    default sample size, no more sentences than take about three minutes of one core (5,900 words for 8 layers of width
    256, 2,600 for 12 layers of width 384), and the result counts the unused ones. Lengths are in bits. The released
    code adds cross-entropies in nats to a first portion in bits and compares the sum with a uniform code in bits, which
    makes codes about 1.4 times too short: `legacy`. Its variational probes sample factors for every example and train
    on minibatches for 200 epochs; here factors are sampled once per step of full-batch Adam. Baselines: the uniform
    code; a code that knows label frequencies; the control task (a random label per word form); the untrained model.
    Intervals of the online code resample sentences of the message and seeds; those of the variational code, whose
    weights belong to no sentence, are ranges over seeds.
    """
    config = ProbeConfig(parse_probe(probe), split.seeds)
    if config.classifier.form not in {"linear", "mlp"}:
        raise Refusal(f"There is no variational code for {probe!r}", "linear or mlp:N", "Choose one with --probe")
    name = f"probes/description_length --label {label}"
    size = _affordable_sentences(recording, split.n_seeds) if sample_size == "auto" else sample_size
    split = replace(split, train_size=min((n for n in (split.train_size, size) if n), default=0))
    dataset, untrained = task_datasets(
        recording, randomised, encoder, word_task(label, recording.corpus), split, min_examples, analysis_name=name
    )
    measures, control = _measure_codes(dataset, config, legacy, control=True)
    n_layers = len(dataset.train.features)
    baselines = {
        "uniform code": _fixed_code(dataset, n_layers, 1.0),
        LABEL_FREQUENCY_CODE: _fixed_code(dataset, n_layers, unigram_compression(dataset)),
        CONTROL_TASK: control,
    }
    if untrained is not None:
        (baselines[UNTRAINED],) = _measure_codes(untrained, config, legacy, control=False)
    units = dict.fromkeys(LENGTHS.values(), "bits and nats per label" if legacy else "bits per label")
    units |= dict.fromkeys(COMPRESSIONS.values(), COMPRESSION_UNIT)
    return LayerCurve(measures=measures, baselines=baselines, units=units, sample=dataset.sample)


def _affordable_sentences(recording: Recording, n_seeds: int) -> int:
    """The number of sentences of average length within the budget; it depends on sizes only, not on the machine."""
    words_per_sentence = sum(len(recorded.text.words) for recorded in recording.inputs) / max(1, len(recording))
    encoder = recording.encoder
    work_per_word = (encoder.layers + 1) * encoder.width * n_seeds
    return max(1, int(MAX_WORK / (work_per_word * max(1.0, words_per_sentence))))


def _fixed_code(dataset: ProbeDataset, n_layers: int, ratio: float) -> dict[str, Estimates]:
    """Length and compression of a code that does not depend on the layer, from its compression."""
    length = np.log2(len(dataset.labels)) / ratio
    return {name: Estimates.exact(np.full(n_layers, length)) for name in LENGTHS.values()} | {
        name: Estimates.exact(np.full(n_layers, ratio)) for name in COMPRESSIONS.values()
    }


def _measure_codes(
    dataset: ProbeDataset, config: ProbeConfig, legacy: bool, *, control: bool
) -> list[dict[str, Estimates]]:
    """Bits per label and compression by each code, for the labels and, with `control`, for control labels."""
    n_classes, seed = len(dataset.labels), config.seeds[0]
    online = online_code_length(dataset, config, legacy=legacy, control=control)
    bits, n_labels = variational_code_length(dataset, config, legacy=legacy, control=control)
    return [
        {
            LENGTHS[ONLINE]: online.length(labelling, seed),
            COMPRESSIONS[ONLINE]: online.compression(labelling, n_classes, seed),
            LENGTHS[VARIATIONAL]: range_over_seeds(bits[labelling] / n_labels[:, None]),
            COMPRESSIONS[VARIATIONAL]: range_over_seeds(n_labels[:, None] * np.log2(n_classes) / bits[labelling]),
        }
        for labelling in range(1 + control)
    ]
