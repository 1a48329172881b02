"""Probe each layer for properties of whole sentences (conneau2018, jawahar2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.dataset import ProbeCase, ProbeDataset, ProbeExamples, probe_dataset, stack_examples
from bertology.analyses.probing.fitting import probe_config
from bertology.analyses.probing.layer_curves import probe_curve
from bertology.analyses.probing.options import MinExamplesOption, NSeedsOption, SeedOption
from bertology.analyses.probing.train_test_split import TrainTestSplit, randomised_encoder
from bertology.arrays import Array
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

NAME = "probes/sentence"
SentencePooling = Literal["mean", "cls"]
TRAIN_SOURCES, TEST_SOURCES = frozenset({"train", "validation"}), frozenset({"test"})


@analysis(
    question="Which sentence-level properties can be predicted from each layer?",
    special_tokens="Special tokens: in the model's input, not analysed, except [CLS] with --pooling cls.",
    citations=("conneau2018", "jawahar2019", "hewitt2019control", "voita2020"),
    sites=("hidden",),
    annotations=("label",),
    version=3,
    cost=Cost(10.0),
    test_corpus="tasks:bigram_shift:english",
)
def sentence(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    pooling: Annotated[SentencePooling, "Sentence vector: `cls`, or the `mean` over non-special tokens."] = "mean",
    probe: Annotated[str, "Probe architecture: linear, rank:N, mlp:N or mlp:N:N; N: hidden units."] = "linear",
    min_examples: MinExamplesOption = 5,
    train_corpus: Annotated[
        str, "Corpus to train on, by name or path; empty: the train split, or a part, of --corpus."
    ] = "",
    train_size: Annotated[int, "Maximum number of training sentences: the first of --train-corpus (0: all)."] = 0,
    train_fraction: Annotated[
        float,
        "Fraction of sentences used for training, in whole documents, if there is no --train-corpus and the corpus has "
        "no splits.",
    ] = 0.7,
    n_seeds: NSeedsOption = 3,
    seed: SeedOption = 0,
) -> LayerCurve:
    """Accuracy of a probe for a sentence label, 0 to 1, by layer.

    The corpus must label its sentences: SentEval's files, `tasks:NAME:CORPUS` (SentEval's ten tasks generated from any
    corpus), or any labelled text. If examples have splits (SentEval, tasks), probes are trained on train and validation
    and tested on test; otherwise whole documents, or sentences, are split. See probes/word for the probes and measures;
    a control label belongs to the longest word of a sentence, the first of several. SentEval's own probes have 50 or
    more sigmoid units and choose one of four penalties on the validation set (word content: none); the released code of
    Jawahar et al. mistakenly stops after four epochs.
    """
    config = probe_config(probe, n_seeds, seed)
    split = TrainTestSplit(train_corpus, train_size if train_corpus else 0, train_fraction, seed)
    dataset = _sentence_dataset(recording, encoder, split, pooling, min_examples)
    untrained = None
    if randomised is not None:
        untrained = _sentence_dataset(randomised, randomised_encoder(encoder), split, pooling, min_examples)
    return probe_curve(dataset, untrained, config, seed=seed, unit_name="sentences", control_type="longest word")


def _sentence_dataset(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit, pooling: SentencePooling, min_examples: int
) -> ProbeDataset:
    sources = {recording.corpus[recorded_input.example_index].source for recorded_input in recording.inputs}
    if not split.train_corpus and sources & TRAIN_SOURCES and sources & TEST_SOURCES:
        parts = [(recording, _indices_with_source(recording, names)) for names in (TRAIN_SOURCES, TEST_SOURCES)]
    else:
        parts = split.split(recording, encoder, ("hidden",), analysis_name=NAME, annotations=("label",))
    train, test = (sentence_examples(part, indices, pooling) for part, indices in parts)
    return probe_dataset(train, test, min_examples, analysis_name=NAME)


def _indices_with_source(recording: Recording, sources: frozenset[str]) -> list[int]:
    return [
        index
        for index, recorded_input in enumerate(recording.inputs)
        if recording.corpus[recorded_input.example_index].source in sources
    ]


def sentence_examples(recording: Recording, indices: Sequence[int], pooling: SentencePooling) -> ProbeExamples:
    """One example per labelled input, sorted by tokens, so that the order of the corpus does not matter."""
    labels = {index: recording.corpus[recording.inputs[index].example_index].label for index in indices}
    order = sorted(
        (index for index in indices if labels[index] is not None),
        key=lambda index: recording.inputs[index].tokens.ids.tobytes(),
    )
    states, inputs = recording["hidden"], [recording.inputs[index] for index in order]
    vectors = [
        _pool(np.asarray(states[index]), recorded_input, pooling)[:, None]
        for index, recorded_input in zip(order, inputs, strict=True)
    ]
    cases = [
        (ProbeCase(labels[index] or "", _longest_word(recorded_input), ()), number)
        for number, (index, recorded_input) in enumerate(zip(order, inputs, strict=True))
    ]
    return stack_examples(vectors, cases, inputs)


def _pool(states: Array, recorded_input: RecordedInput, pooling: SentencePooling) -> Array:
    """(layer, width) sentence vector."""
    kind = SpecialToken.CLS if pooling == "cls" else SpecialToken.NONE
    positions = np.flatnonzero(recorded_input.tokens.special_kinds == kind)
    if not len(positions):
        text = " ".join(recorded_input.text.words)[:60]
        raise Refusal(
            f"{text!r} has no {'[CLS]' if pooling == 'cls' else 'non-special token'}",
            "one in every input",
            "Use --pooling mean" if pooling == "cls" else "Remove empty sentences",
        )
    if pooling == "cls":
        return states[:, positions[0]].astype(np.float32)
    return states[:, positions].astype(np.float32).mean(1)


def _longest_word(recorded_input: RecordedInput) -> str:
    return max((word.lower() for word in recorded_input.text.words), key=len, default="")
