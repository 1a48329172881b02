"""CoarseWSD-20: a word's folder with data, gold and the names of the classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces

from bertology.corpus.read import read
from bertology.errors import Refusal

CLASSES = '{"0": "apple_inc", "1": "apple_fruit"}'


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    made = Reading(tmp_path, "coarsewsd", "apple/train.data.txt")
    made.write("1\n0\n1\n", "apple/train.gold.txt")
    made.write(CLASSES, "apple/classes_map.txt")
    return made


GOOD = "2\tthe red apple fell\n0\tapple sold phones\n"


def test_the_target_has_the_sense(sample: Reading) -> None:
    corpus = sample.read(GOOD)
    part = corpus[0].parts[0]
    assert part.senses == (None, None, "apple_fruit", None)
    assert dict(part.marks) == {"target": (2,)}
    assert [item.label for item in corpus] == ["apple_fruit", "apple_inc"]
    assert corpus[1].source == "apple/train"
    assert_surfaces(corpus)


def test_folders_are_read_by_split(sample: Reading) -> None:
    sample.write(GOOD)
    sample.write("1\tan apple\n", "apple/test.data.txt")
    sample.write("1\n", "apple/test.gold.txt")
    assert [item.source for item in read(sample.folder)] == ["apple/test", "apple/train", "apple/train"]
    assert len(read(sample.folder / "apple", split="test")) == 1
    with pytest.raises(Refusal, match="split"):
        read(sample.folder, split="dev")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("9\tan apple\n", "index out of range"),
        ("x\tan apple\n", "index out of range"),
        ("1 an apple\n", "wrong column count"),
    ],
)
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(GOOD + bad, reason, line=3, kept=2)


def test_senses_must_be_known_and_there(sample: Reading) -> None:
    sample.bad(GOOD + GOOD, "unknown sense", line=4, kept=3)
    sample.write("1\n7\n", "apple/train.gold.txt")
    sample.bad(GOOD, "unknown sense", line=2, kept=1)


def test_a_skipped_line_does_not_shift_the_senses(sample: Reading) -> None:
    corpus = sample.read(b"0\t\xff\n" + GOOD.encode(), skip_bad=True)
    assert [item.label for item in corpus] == ["apple_inc", "apple_fruit"]


def test_the_files_beside_it_are_needed(sample: Reading) -> None:
    sample.write(b"{", "apple/classes_map.txt")
    sample.refused(GOOD, "classes_map.txt", "JSON")
    (sample.folder / "apple/classes_map.txt").unlink()
    sample.refused(GOOD, "has no classes_map.txt beside it")
