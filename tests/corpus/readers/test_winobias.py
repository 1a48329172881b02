"""WinoBias: brackets become mentions and vanish from the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "winobias", "sample.txt")


GOOD = "1 [The clerk] paid the cook because [she] was kind.\n"


def test_brackets_are_mentions_and_no_text(sample: Reading) -> None:
    corpus = sample.read(GOOD)
    part = corpus[0].parts[0]
    assert part.text == "The clerk paid the cook because she was kind."
    assert part.mentions == (Span(0, 2, "0"), Span(6, 7, "0"))
    assert dict(part.marks) == {"pronoun": (6,), "antecedent": (0, 1)}
    assert (corpus[0].id, corpus[0].source) == ("1", "sample.txt")
    assert_surfaces(corpus)


def test_two_pronouns_of_one_antecedent(sample: Reading) -> None:
    part = sample.read("7 [The cook] left because [he] lost [his] hat.\n")[0].parts[0]
    assert part.marks["pronoun"] == (4, 6)


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
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(GOOD + bad + GOOD, reason, line=2, kept=2)


@pytest.mark.parametrize(
    "name", ["pro_stereotyped_type1", "pro_stereotyped_type2", "anti_stereotyped_type1", "anti_stereotyped_type2"]
)
def test_real_files(name: str) -> None:
    path = shared(f"data/coref/winobias/{name}.txt.dev")
    corpus = read(path)
    assert (len(corpus), corpus.format, corpus.skipped) == (396, "winobias", ())
    assert sum(len(part.mentions or ()) for part in corpus.sentences) == path.read_text().count("[")
    assert_surfaces(corpus)


def test_a_folder_is_read_file_after_file(tmp_path: Path) -> None:
    for name in ("pro_stereotyped_type1.txt.dev", "anti_stereotyped_type1.txt.dev"):
        (tmp_path / name).write_text(GOOD, "utf-8")
    (tmp_path / "notes.txt").write_text("no sentence", "utf-8")
    corpus = read(tmp_path)
    assert corpus.format == "winobias"
    assert [item.source for item in corpus] == ["anti_stereotyped_type1.txt.dev", "pro_stereotyped_type1.txt.dev"]
