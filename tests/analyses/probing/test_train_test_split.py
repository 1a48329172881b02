"""The maximum training size samples training sentences, leaves the test data unchanged, and is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import planted_probes
from bertology.analyses import registry
from bertology.analyses.probing.train_test_split import (
    CorpusSplit,
    DataPart,
    TrainTestSplit,
    load_train_corpus,
    without_shared_examples,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus, load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.results.shapes import LayerCurve


def split_texts(corpus: Corpus, train_size: int, seed: int = 0) -> tuple[set[str], set[str]]:
    """The texts of the training and of the test data."""
    recording = planted_probes.make_recording(corpus, None)
    data = TrainTestSplit(train_size=train_size, seed=seed).split(recording, None, (), analysis_name="test")
    return texts(data.train), texts(data.test)


def texts(part: DataPart) -> set[str]:
    return {part.recording.inputs[index].text.segments[0].text for index in part.indices}


def test_a_maximum_size_samples_training_sentences_and_leaves_the_test_data_unchanged() -> None:
    corpus = planted_probes.make_corpus()
    train, test = split_texts(corpus, 0)
    sample, same_test = split_texts(corpus, 10)
    assert len(sample) == 10 and sample < train and same_test == test
    assert sample == split_texts(corpus[::-1], 10)[0] != split_texts(corpus, 10, seed=1)[0]
    assert split_texts(corpus, 10_000)[0] == train


def test_unused_training_sentences_are_counted() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None)
    n_train = len(TrainTestSplit().split(recording, None, (), analysis_name="test").train.indices)
    for size, unused in ((10, {"beyond --train-size": n_train - 10}), (0, {}), (n_train, {}), (10_000, {})):
        data = TrainTestSplit(train_size=size).split(recording, None, (), analysis_name="test")
        assert data.left_out == unused


def test_a_corpus_split_uses_all_training_sentences_of_the_recording() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None)
    limited, whole = (
        split.split(recording, None, (), analysis_name="test") for split in (CorpusSplit(train_size=10), CorpusSplit())
    )
    assert limited.train.indices == whole.train.indices and limited.test.indices == whole.test.indices
    assert not limited.left_out


@pytest.mark.parametrize("train_size", [0, 20])
def test_a_probe_reports_unused_sentences_and_still_finds_encoded_labels(train_size: int) -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None, planted_probes.tag)
    data = planted_probes.run_curve("probes/word", recording, train_size=train_size, n_seeds=2)
    assert ("unused training sentences (beyond --train-size)" in data.sample) == bool(train_size)
    assert data.measures["accuracy"].value[1] > 0.9 > data.measures["accuracy"].value[0]
    assert np.all(data.measures["accuracy"].n == data.measures["accuracy"].n[0])


def test_training_examples_with_the_text_of_a_test_example_are_left_out() -> None:
    test = as_corpus(["The cat sat.", "A dog ran"])
    train = as_corpus(["the  cat SAT.", "A dog sat", "A dog ran", "The cat, the dog"])
    kept, n_shared = without_shared_examples(train, test)
    assert [example.segments[0].text for example in kept] == ["A dog sat", "The cat, the dog"] and n_shared == 2
    with pytest.raises(Refusal, match=r"All 2 examples of --train-corpus .* are also in the test corpus"):
        without_shared_examples(test, test)


def test_pairs_are_shared_only_as_a_whole() -> None:
    pairs = load_corpus("diagnostic", limit=6)
    kept, n_shared = without_shared_examples(pairs, pairs[:2])
    assert len(kept) + n_shared == 6 and n_shared >= 2
    sentences = as_corpus([segment.text for example in pairs for segment in example.segments])
    assert without_shared_examples(pairs, sentences)[1] == 0


def test_the_same_corpus_twice_is_refused_and_a_part_of_it_is_counted(tmp_path: Path) -> None:
    encoder, corpus = load("tiny"), load_corpus("english", limit=60)
    inputs = RunInputs(corpus=corpus[:30], encoder=encoder, store=tmp_path, random_baseline=False)
    options = {"train_corpus": "english", "train_size": 30, "n_seeds": 1, "min_examples": 5}
    with pytest.raises(Refusal, match="All 30 examples of --train-corpus"):
        run_analysis(registry.get("probes/word"), inputs, options)
    data = run_analysis(registry.get("probes/word"), inputs, {**options, "train_size": 60}).data
    assert isinstance(data, LayerCurve)
    assert data.sample["unused training sentences (also in the test corpus)"] == 30
    assert data.sample["training sentences"] <= 30


def test_recordings_of_the_training_corpus_are_stored(tmp_path: Path) -> None:
    corpus = load_corpus("english", limit=60)
    recording = record(load("tiny"), corpus[:20], ("hidden.words",), store=tmp_path)
    (first,) = {path.name for path in tmp_path.iterdir()}
    split = TrainTestSplit(train_corpus="english", train_size=60)
    data = split.split(recording, load("tiny"), ("hidden.words",), analysis_name="test")
    assert data.train.recording.store == tmp_path
    assert len({path.name for path in tmp_path.iterdir()} - {first}) == 1


def test_the_training_corpus_has_its_own_format_options(tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    path.write_text("text\tgrade\tlabel\nfine\thigh\tx\npoor\tlow\tx\n", "utf-8")
    corpus = load_train_corpus(str(path), 0, "labelled", "label=grade, text=text")
    assert [example.label for example in corpus] == ["high", "low"]
    assert len(load_train_corpus(str(path), 1, "labelled", "label=grade,text=text")) == 1
    with pytest.raises(Refusal, match="--train-format-option was given 'grade'"):
        load_train_corpus(str(path), 0, "labelled", "grade")
    with pytest.raises(Refusal, match="gradd"):
        load_train_corpus(str(path), 0, "labelled", "label=gradd,text=text")
