"""SentEval: split, label and tokenised sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "senteval", "sample.txt")


TEXT = "tr\tNN\tThe dog 's ball .\nva\tNNS\tDogs bark .\nte\tNN\tA cat .\n"


def test_words_are_split_at_spaces_and_the_split_is_the_source(sample: ReaderSample) -> None:
    corpus = sample.read(TEXT)
    assert corpus[0].segments[0].words == ("The", "dog", "'s", "ball", ".")
    assert [(example.source, example.label) for example in corpus] == [
        ("train", "NN"),
        ("validation", "NNS"),
        ("test", "NN"),
    ]
    assert_offsets_match(corpus)


def test_one_split_can_be_read(sample: ReaderSample) -> None:
    assert [example.id for example in sample.read(TEXT, split="validation")] == ["2"]
    with pytest.raises(Exception, match="split"):
        sample.read(TEXT, split="valid")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("tr\tNN\n", "wrong column count"),
        ("xx\tNN\ta\n", "unknown split"),
        ("tr\t\ta\n", "missing annotation"),
        ("tr\tNN\t \n", "missing annotation"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(TEXT + bad, reason, line=4, n_examples=3)


def test_the_first_column_determines_the_format(sample: ReaderSample) -> None:
    assert read(sample.write(TEXT)).format == "senteval"
    assert read(sample.write(TEXT + TEXT)).format == "senteval", "repeated splits are not the labels of pairs"
    assert read(sample.write("The dog barks .\n")).format == "text"
