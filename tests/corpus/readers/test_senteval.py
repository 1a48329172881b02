"""SentEval probing files: split, label, sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "senteval", "sample.txt")


TEXT = "tr\tNN\tThe dog 's ball .\nva\tNNS\tDogs bark .\nte\tNN\tA cat .\n"


def test_words_stand_between_blanks_and_the_split_is_the_source(sample: Reading) -> None:
    corpus = sample.read(TEXT)
    assert corpus[0].parts[0].words == ("The", "dog", "'s", "ball", ".")
    assert [(item.source, item.label) for item in corpus] == [("train", "NN"), ("validation", "NNS"), ("test", "NN")]
    assert_surfaces(corpus)


def test_one_split_alone(sample: Reading) -> None:
    assert [item.id for item in sample.read(TEXT, split="validation")] == ["2"]
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
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(TEXT + bad, reason, line=4, kept=3)


def test_it_is_recognised_by_its_first_column(sample: Reading) -> None:
    assert read(sample.write(TEXT)).format == "senteval"
    assert read(sample.write("The dog barks .\n")).format == "text"
