"""Word-in-Context: two examples per pair, each with its target, with the pair as document."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.read import read
from bertology.errors import Refusal

GOOD = "bank\tN\t4-1\tWe sat on the bank .\tThe bank is closed .\nplay\tV\t0-1\tPlay it again\tThey played it\n"


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    sample = ReaderSample(tmp_path, "wic", "dev/dev.data.txt")
    sample.write("F\nT\nT\n", "dev/dev.gold.txt")
    return sample


def test_a_pair_is_two_examples(sample: ReaderSample) -> None:
    corpus = sample.read(GOOD)
    assert [example.label for example in corpus] == ["F", "F", "T", "T"]
    assert [example.segments[0].document for example in corpus] == ["dev-1", "dev-1", "dev-2", "dev-2"]
    targets = [example.segments[0].words[example.segments[0].marked_words["target"][0]] for example in corpus]
    assert targets == ["bank", "bank", "Play", "played"]
    assert len({example.id for example in corpus}) == 4 and corpus[0].source == "dev"
    assert_offsets_match(corpus)


def test_directories_are_read_by_split(sample: ReaderSample) -> None:
    sample.write(GOOD)
    sample.write(GOOD, "train/train.data.txt")
    sample.write("T\nF\n", "train/train.gold.txt")
    assert [example.source for example in read(sample.directory)] == ["dev"] * 4 + ["train"] * 4
    assert len(read(sample.directory, split="dev")) == 4
    with pytest.raises(Refusal, match="split"):
        read(sample.directory, split="validation")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("bank\tN\t4-9\tWe sat on the bank .\tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t4\tWe sat on the bank .\tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t0-0\t \tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t4-1\tWe sat on the bank .\n", "wrong column count"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + bad, reason, line=3, n_examples=4)


def test_missing_and_unknown_labels_are_malformed(sample: ReaderSample) -> None:
    sample.write("F\nT\nyes\n", "dev/dev.gold.txt")
    sample.assert_malformed(GOOD + GOOD.splitlines()[0], "unknown label", line=3, n_examples=4)
    (sample.directory / "dev/dev.gold.txt").unlink()
    sample.assert_refused(GOOD, "has no dev.gold.txt in its directory")
