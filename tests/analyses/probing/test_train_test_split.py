"""The maximum training size samples training sentences, leaves the test data unchanged, and is reported."""

from __future__ import annotations

import numpy as np
import pytest

import planted_probes
from bertology.analyses.probing.train_test_split import CorpusSplit, TrainTestSplit
from bertology.corpus.corpus import Corpus


def split_texts(corpus: Corpus, train_size: int, seed: int = 0) -> tuple[set[str], set[str]]:
    """The texts of the training and of the test data."""
    recording = planted_probes.make_recording(corpus, None)
    train, test = (
        {part.inputs[index].text.segments[0].text for index in indices}
        for part, indices in TrainTestSplit(train_size=train_size, seed=seed).split(
            recording, None, (), analysis_name="test"
        )
    )
    return train, test


def test_a_maximum_size_samples_training_sentences_and_leaves_the_test_data_unchanged() -> None:
    corpus = planted_probes.make_corpus()
    train, test = split_texts(corpus, 0)
    sample, same_test = split_texts(corpus, 10)
    assert len(sample) == 10 and sample < train and same_test == test
    assert sample == split_texts(corpus[::-1], 10)[0] != split_texts(corpus, 10, seed=1)[0]
    assert split_texts(corpus, 10_000)[0] == train


def test_unused_training_sentences_are_counted() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None)
    (_, train), _ = TrainTestSplit().split(recording, None, (), analysis_name="test")
    assert TrainTestSplit(train_size=10).n_unused(recording) == len(train) - 10
    for size in (0, len(train), 10_000):
        assert TrainTestSplit(train_size=size).n_unused(recording) == 0
    assert TrainTestSplit(train_corpus="another corpus", train_size=10).n_unused(recording) == 0


def test_a_corpus_split_uses_all_training_sentences_of_the_recording() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None)
    parts, all_parts = (
        split.split(recording, None, (), analysis_name="test") for split in (CorpusSplit(train_size=10), CorpusSplit())
    )
    assert [indices for _, indices in parts] == [indices for _, indices in all_parts]
    assert CorpusSplit(train_size=10).n_unused(recording) == 0


@pytest.mark.parametrize("train_size", [0, 20])
def test_a_probe_reports_unused_sentences_and_still_finds_encoded_labels(train_size: int) -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None, planted_probes.tag)
    data = planted_probes.run_curve("probes/word", recording, train_size=train_size, n_seeds=2)
    assert ("unused training sentences" in data.sample) == bool(train_size)
    assert data.measures["accuracy"].value[1] > 0.9 > data.measures["accuracy"].value[0]
    assert np.all(data.measures["accuracy"].n == data.measures["accuracy"].n[0])
