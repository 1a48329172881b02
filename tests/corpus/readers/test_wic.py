"""WiC: two items a pair, each with its target, the pair as their document."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces

from bertology.corpus.read import read
from bertology.errors import Refusal

GOOD = "bank\tN\t4-1\tWe sat on the bank .\tThe bank is closed .\nplay\tV\t0-1\tPlay it again\tThey played it\n"


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    made = Reading(tmp_path, "wic", "dev/dev.data.txt")
    made.write("F\nT\nT\n", "dev/dev.gold.txt")
    return made


def test_a_pair_is_two_items(sample: Reading) -> None:
    corpus = sample.read(GOOD)
    assert [item.label for item in corpus] == ["F", "F", "T", "T"]
    assert [item.parts[0].document for item in corpus] == ["dev-1", "dev-1", "dev-2", "dev-2"]
    targets = [item.parts[0].words[item.parts[0].marks["target"][0]] for item in corpus]
    assert targets == ["bank", "bank", "Play", "played"]
    assert len({item.id for item in corpus}) == 4 and corpus[0].source == "dev"
    assert_surfaces(corpus)


def test_folders_are_read_by_split(sample: Reading) -> None:
    sample.write(GOOD)
    sample.write(GOOD, "train/train.data.txt")
    sample.write("T\nF\n", "train/train.gold.txt")
    assert [item.source for item in read(sample.folder)] == ["dev"] * 4 + ["train"] * 4
    assert len(read(sample.folder, split="dev")) == 4
    with pytest.raises(Refusal, match="split"):
        read(sample.folder, split="validation")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("bank\tN\t4-9\tWe sat on the bank .\tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t4\tWe sat on the bank .\tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t0-0\t \tThe bank is closed .\n", "index out of range"),
        ("bank\tN\t4-1\tWe sat on the bank .\n", "wrong column count"),
    ],
)
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(GOOD + bad, reason, line=3, kept=4)


def test_labels_must_be_known_and_there(sample: Reading) -> None:
    sample.write("F\nT\nyes\n", "dev/dev.gold.txt")
    sample.bad(GOOD + GOOD.splitlines()[0], "unknown label", line=3, kept=4)
    (sample.folder / "dev/dev.gold.txt").unlink()
    sample.refused(GOOD, "has no dev.gold.txt beside it")
