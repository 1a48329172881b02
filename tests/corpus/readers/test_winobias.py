"""WinoBias: brackets become mentions and are removed from the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "winobias", "sample.txt")


GOOD = "1 [The clerk] paid the cook because [she] was kind.\n"


def test_brackets_are_mentions_and_not_part_of_the_text(sample: ReaderSample) -> None:
    corpus = sample.read(GOOD)
    sentence = corpus[0].segments[0]
    assert sentence.text == "The clerk paid the cook because she was kind."
    assert sentence.mentions == (Span(0, 2, "0"), Span(6, 7, "0"))
    assert dict(sentence.marked_words) == {"pronoun": (6,), "antecedent": (0, 1)}
    assert (corpus[0].id, corpus[0].source) == ("1", "sample.txt")
    assert_offsets_match(corpus)


def test_an_antecedent_can_have_two_pronouns(sample: ReaderSample) -> None:
    sentence = sample.read("7 [The cook] left because [he] lost [his] hat.\n")[0].segments[0]
    assert sentence.marked_words["pronoun"] == (4, 6)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("[The clerk] saw [her].\n", "no number"),
        ("2 [The clerk saw [her].\n", "wrong brackets"),
        ("2 The clerk] saw [her].\n", "wrong brackets"),
        ("2 [The clerk] saw [her.\n", "wrong brackets"),
        ("2 [The clerk] saw her.\n", "wrong brackets"),
        ("2 [The clerk] saw [the cook].\n", "wrong brackets"),
        ("2 [] saw [her].\n", "no word at the offset"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + bad + GOOD, reason, line=2, n_examples=2)


@pytest.mark.parametrize(
    "name", ["pro_stereotyped_type1", "pro_stereotyped_type2", "anti_stereotyped_type1", "anti_stereotyped_type2"]
)
def test_real_files(name: str) -> None:
    path = shared(f"data/coref/winobias/{name}.txt.dev")
    corpus = read(path)
    assert (len(corpus), corpus.format, corpus.skipped) == (396, "winobias", ())
    assert sum(len(sentence.mentions or ()) for sentence in corpus.sentences) == path.read_text().count("[")
    assert_offsets_match(corpus)


def test_all_files_of_a_directory_are_read(tmp_path: Path) -> None:
    for name in ("pro_stereotyped_type1.txt.dev", "anti_stereotyped_type1.txt.dev"):
        (tmp_path / name).write_text(GOOD, "utf-8")
    (tmp_path / "notes.txt").write_text("no sentence", "utf-8")
    corpus = read(tmp_path)
    assert corpus.format == "winobias"
    assert [example.source for example in corpus] == ["anti_stereotyped_type1.txt.dev", "pro_stereotyped_type1.txt.dev"]
