"""GAP: a pronoun and two names at their offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "gap", "sample.tsv")


HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
TEXT = "Ann Lee met Eve's aunt when she left."
GOOD = f"x\t{TEXT}\tshe\t28\tAnn Lee\t0\tTRUE\tEve\t12\tFALSE\turl\n"


def test_mentions_marked_words_and_label(sample: ReaderSample) -> None:
    (example,) = sample.read(HEADER + GOOD)
    sentence = example.segments[0]
    assert sentence.words == ("Ann", "Lee", "met", "Eve's", "aunt", "when", "she", "left", ".")
    assert sentence.mentions == (Span(0, 2, "0"), Span(3, 4, "2"), Span(6, 7, "0"))
    assert dict(sentence.marked_words) == {"pronoun": (6,), "A": (0, 1), "B": (3,)}
    assert (example.label, sentence.label, example.id) == ("A", "A", "x")


def test_a_name_inside_a_word_is_extended_and_counted(sample: ReaderSample) -> None:
    assert [skip.reason for skip in sample.read(HEADER + GOOD).skipped] == ["mentions extended to whole words"]


def test_the_pronoun_can_refer_to_neither_name(sample: ReaderSample) -> None:
    (example,) = sample.read(HEADER + GOOD.replace("TRUE", "FALSE"))
    assert example.label == "neither"
    assert {span.label for span in example.segments[0].mentions or ()} == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("\t28\t", "\t27\t", "offset does not match the text"),
        ("\t28\t", "\tx\t", "offset is not a number"),
        ("\t12\t", "\t999\t", "offset does not match the text"),
        ("FALSE", "TRUE", "two antecedents"),
        ("FALSE", "", "missing annotation"),
        ("\turl", "", "wrong column count"),
        ("\tshe\t", "\t\t", "missing pronoun"),
    ],
)
def test_a_malformed_row_is_refused_or_counted(old: str, new: str, reason: str, sample: ReaderSample) -> None:
    bad = GOOD.replace(old, new)
    sample.assert_refused(HEADER + bad, line=2)
    corpus = sample.read(HEADER + bad + GOOD.replace("Eve's", "Eve a"), skip_malformed=True)
    assert [skip.reason for skip in corpus.skipped] == [reason]
    assert len(corpus) == 1


def test_a_missing_column_is_named(sample: ReaderSample) -> None:
    sample.assert_refused(HEADER.replace("B-coref", "Bcoref") + GOOD, "'b-coref'")


@pytest.mark.parametrize(("name", "count"), [("development", 2000), ("validation", 454)])
def test_real_files(name: str, count: int) -> None:
    path = shared(f"data/coref/gap-{name}.tsv")
    corpus = read(path)
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    assert (len(corpus), corpus.format) == (count, "gap")
    for example, row in zip(corpus, rows, strict=True):
        sentence = example.segments[0]
        for role, surface in (("pronoun", row[2]), ("A", row[4]), ("B", row[7])):
            indices = sentence.marked_words[role]
            assert surface in sentence.text[sentence.offsets[indices[0]][0] : sentence.offsets[indices[-1]][1]]
        assert example.label == ("A" if row[6] == "TRUE" else "B" if row[9] == "TRUE" else "neither")
    assert_offsets_match(corpus)
