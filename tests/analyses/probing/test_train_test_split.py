"""The maximum training size samples training sentences, leaves the test data unchanged, and is reported."""

from __future__ import annotations

import numpy as np
import pytest

import planted_probes
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.corpus.corpus import Corpus


def split_texts(corpus: Corpus, train_size: int, seed: int = 0) -> tuple[set[str], set[str]]:
    """The texts of the training and of the test data."""
    recording = planted_probes.make_recording(corpus, None)
    train, test = (
        {part.inputs[index].text.segments[0].text for index in indices}
        for part, indices in TrainTestSplit("", train_size, 0.7, seed).split(recording, None, (), analysis_name="test")
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
    (_, train), _ = TrainTestSplit("", 0, 0.7, 0).split(recording, None, (), analysis_name="test")
    split = TrainTestSplit("", 10, 0.7, 0)
    assert split.n_unused(recording) == len(train) - 10
    assert str(len(train) - 10) in split.unused_note(recording)
    for size in (0, len(train), 10_000):
        assert TrainTestSplit("", size, 0.7, 0).unused_note(recording) == ""
    assert TrainTestSplit("another corpus", 10, 0.7, 0).n_unused(recording) == 0


@pytest.mark.parametrize("train_size", [0, 20])
def test_a_probe_reports_unused_sentences_and_still_finds_encoded_labels(train_size: int) -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None, planted_probes.tag)
    data = planted_probes.run_curve("probes/word", recording, train_size=train_size, n_seeds=2)
    assert ("unused training sentences" in data.sample) == bool(train_size)
    assert data.measures["accuracy"].value[1] > 0.9 > data.measures["accuracy"].value[0]
    assert np.all(data.measures["accuracy"].n == data.measures["accuracy"].n[0])
