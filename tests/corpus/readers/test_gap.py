"""GAP: the pronoun and two names at their offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "gap", "sample.tsv")


HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
TEXT = "Ann Lee met Eve's aunt when she left."
GOOD = f"x\t{TEXT}\tshe\t28\tAnn Lee\t0\tTRUE\tEve\t12\tFALSE\turl\n"


def test_mentions_marks_and_label(sample: Reading) -> None:
    (item,) = sample.read(HEADER + GOOD)
    part = item.parts[0]
    assert part.words == ("Ann", "Lee", "met", "Eve's", "aunt", "when", "she", "left", ".")
    assert part.mentions == (Span(0, 2, "0"), Span(3, 4, "2"), Span(6, 7, "0"))
    assert dict(part.marks) == {"pronoun": (6,), "A": (0, 1), "B": (3,)}
    assert (item.label, part.label, item.id) == ("A", "A", "x")


def test_a_name_inside_a_word_is_counted(sample: Reading) -> None:
    assert [skip.reason for skip in sample.read(HEADER + GOOD).skipped] == ["mention widened to whole words"]


def test_neither_name_may_be_meant(sample: Reading) -> None:
    (item,) = sample.read(HEADER + GOOD.replace("TRUE", "FALSE"))
    assert item.label == "neither"
    assert {span.label for span in item.parts[0].mentions or ()} == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("\t28\t", "\t27\t", "offset does not match the text"),
        ("\t28\t", "\tx\t", "offset is no number"),
        ("\t12\t", "\t999\t", "offset does not match the text"),
        ("FALSE", "TRUE", "two antecedents"),
        ("FALSE", "", "missing annotation"),
        ("\turl", "", "wrong column count"),
        ("\tshe\t", "\t\t", "missing pronoun"),
    ],
)
def test_a_broken_row_is_refused_or_counted(old: str, new: str, reason: str, sample: Reading) -> None:
    bad = GOOD.replace(old, new)
    sample.refused(HEADER + bad, line=2)
    corpus = sample.read(HEADER + bad + GOOD.replace("Eve's", "Eve a"), skip_bad=True)
    assert [skip.reason for skip in corpus.skipped] == [reason]
    assert len(corpus) == 1


def test_a_missing_column_is_named(sample: Reading) -> None:
    sample.refused(HEADER.replace("B-coref", "Bcoref") + GOOD, "'b-coref'")


@pytest.mark.parametrize(("name", "count"), [("development", 2000), ("validation", 454)])
def test_real_files(name: str, count: int) -> None:
    path = shared(f"data/coref/gap-{name}.tsv")
    corpus = read(path)
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    assert (len(corpus), corpus.format) == (count, "gap")
    for item, row in zip(corpus, rows, strict=True):
        part = item.parts[0]
        for role, surface in (("pronoun", row[2]), ("A", row[4]), ("B", row[7])):
            indices = part.marks[role]
            assert surface in part.text[part.offsets[indices[0]][0] : part.offsets[indices[-1]][1]]
        assert item.label == ("A" if row[6] == "TRUE" else "B" if row[9] == "TRUE" else "neither")
    assert_surfaces(corpus)
