"""CoarseWSD-20: the directory of a word with data, gold senses and class names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.read import read
from bertology.errors import Refusal

CLASSES = '{"0": "apple_inc", "1": "apple_fruit"}'


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    sample = ReaderSample(tmp_path, "coarsewsd", "apple/train.data.txt")
    sample.write("1\n0\n1\n", "apple/train.gold.txt")
    sample.write(CLASSES, "apple/classes_map.txt")
    return sample


GOOD = "2\tthe red apple fell\n0\tapple sold phones\n"


def test_the_target_has_the_sense(sample: ReaderSample) -> None:
    corpus = sample.read(GOOD)
    sentence = corpus[0].segments[0]
    assert sentence.senses == (None, None, "apple_fruit", None)
    assert dict(sentence.marked_words) == {"target": (2,)}
    assert [example.label for example in corpus] == ["apple_fruit", "apple_inc"]
    assert corpus[1].source == "apple/train"
    assert_offsets_match(corpus)


def test_directories_are_read_by_split(sample: ReaderSample) -> None:
    sample.write(GOOD)
    sample.write("1\tan apple\n", "apple/test.data.txt")
    sample.write("1\n", "apple/test.gold.txt")
    assert [example.source for example in read(sample.directory)] == ["apple/test", "apple/train", "apple/train"]
    assert len(read(sample.directory / "apple", split="test")) == 1
    with pytest.raises(Refusal, match="split"):
        read(sample.directory, split="dev")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("9\tan apple\n", "index out of range"),
        ("x\tan apple\n", "index out of range"),
        ("1 an apple\n", "wrong column count"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + bad, reason, line=3, n_examples=2)


def test_missing_and_unknown_senses_are_malformed(sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + GOOD, "unknown sense", line=4, n_examples=3)
    sample.write("1\n7\n", "apple/train.gold.txt")
    sample.assert_malformed(GOOD, "unknown sense", line=2, n_examples=1)


def test_a_skipped_line_does_not_shift_the_senses(sample: ReaderSample) -> None:
    corpus = sample.read(b"0\t\xff\n" + GOOD.encode(), skip_malformed=True)
    assert [example.label for example in corpus] == ["apple_inc", "apple_fruit"]


def test_the_class_map_is_required(sample: ReaderSample) -> None:
    sample.write(b"{", "apple/classes_map.txt")
    sample.assert_refused(GOOD, "classes_map.txt", "JSON")
    (sample.directory / "apple/classes_map.txt").unlink()
    sample.assert_refused(GOOD, "has no classes_map.txt in its directory")
