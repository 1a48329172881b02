"""Probe each layer for properties of whole sentences (conneau2018, jawahar2019)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.dataset import ProbeCase, ProbeDataset, ProbeExamples, probe_dataset, stack_examples
from bertology.analyses.probing.fitting import ProbeConfig, parse_probe
from bertology.analyses.probing.layer_curves import probe_curve
from bertology.analyses.probing.options import (
    ExampleLabelOption,
    MinExamplesOption,
    ProbeOption,
    check_example_label,
)
from bertology.analyses.probing.train_test_split import (
    CorpusSplit,
    DataPart,
    TrainTestData,
    TrainTestSplit,
    for_both_models,
)
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
    check_corpus=check_example_label,
    version=5,
    cost=Cost(10.0),
    test_corpus="tasks:bigram_shift:english",
    answers=True,
)
def sentence(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: ExampleLabelOption = "",
    pooling: Annotated[SentencePooling, "Sentence vector: `cls`, or the `mean` over non-special tokens."] = "mean",
    probe: ProbeOption = "linear",
    min_examples: MinExamplesOption = 5,
    split: CorpusSplit = CorpusSplit(),
) -> LayerCurve:
    """Accuracy of a probe for a sentence label, 0 to 1, by layer.

    The corpus must label its sentences: SentEval's files, `tasks:NAME:CORPUS` (SentEval's ten tasks generated from any
    corpus), or any labelled text; `--label` names a column of a table (TSV, CSV, JSON lines). If examples have splits
    (SentEval, tasks), probes are trained on train and validation and tested on test; otherwise whole documents, or
    sentences, are split. See probes/word for the probes and measures; a control label belongs to the longest word of a
    sentence, the first of several. SentEval's own probes have 50 or more sigmoid units and choose one of four penalties
    on the validation set (word content: none); the released code of Jawahar et al. mistakenly stops after four epochs.
    """
    config = ProbeConfig(parse_probe(probe), split.seeds)

    build = partial(sentence_dataset, label=label, pooling=pooling, split=split, min_examples=min_examples)
    datasets = for_both_models(build, recording, randomised, encoder)
    return probe_curve(*datasets, config, unit_name="sentences", control_type="longest word")


def sentence_dataset(
    recording: Recording,
    encoder: Encoder | None,
    *,
    label: str,
    pooling: SentencePooling,
    split: TrainTestSplit,
    min_examples: int,
) -> ProbeDataset:
    """Training and test examples of a sentence label."""
    data = _split(recording, encoder, split)
    train, test = (sentence_examples(*part, pooling, label) for part in (data.train, data.test))
    return probe_dataset(train, test, min_examples, analysis_name=NAME, unused=data.sample)


def _split(recording: Recording, encoder: Encoder | None, split: TrainTestSplit) -> TrainTestData:
    """Training and test data: the splits of the corpus if it has both, else those of the options."""
    sources = [recording.corpus[recorded_input.example_index].source for recorded_input in recording.inputs]
    train, test = (
        [index for index, source in enumerate(sources) if source in names] for names in (TRAIN_SOURCES, TEST_SOURCES)
    )
    if train and test and not split.train_corpus:
        return TrainTestData(DataPart(recording, train), DataPart(recording, test), {})
    return split.split(recording, encoder, ("hidden",), analysis_name=NAME, annotations=("label",))


def sentence_examples(
    recording: Recording, indices: Sequence[int], pooling: SentencePooling, label: str = ""
) -> ProbeExamples:
    """One example per input with this label, sorted by tokens, so that the order of the corpus does not matter."""
    corpus = recording.corpus.with_label(label)
    labels = {index: corpus[recording.inputs[index].example_index].label for index in indices}
    order = sorted(
        (index for index in indices if labels[index] is not None),
        key=lambda index: recording.inputs[index].tokens.ids.tobytes(),
    )
    vectors: list[Array] = []
    cases: list[tuple[ProbeCase, int]] = []
    for number, index in enumerate(order):
        recorded_input = recording.inputs[index]
        longest_word = max((word.lower() for word in recorded_input.text.words), key=len, default="")
        vectors.append(_pool(np.asarray(recording["hidden"][index]), recorded_input, pooling)[:, None])
        cases.append((ProbeCase(labels[index] or "", longest_word, ()), number))
    return stack_examples(vectors, cases, [recording.inputs[index] for index in order])


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
