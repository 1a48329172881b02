"""Labelled sentences: headers, options, JSON lines, CSV, the spaced form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "labelled", "sample.tsv")


def pairs(sample: Reading, content: str, /, **options: Any) -> list[tuple[str | None, str]]:
    return [(item.label, item.parts[0].text) for item in sample.read(content, **options)]


EXPECTED = [("pos", "A good film."), ("neg", "A bad one.")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("header.tsv", "label\ttext\npos\tA good film.\nneg\tA bad one.\n"),
        ("other.tsv", "idx\tSentence\tGold_Label\n0\tA good film.\tpos\n1\tA bad one.\tneg\n"),
        ("bare.tsv", "pos\tA good film.\nneg\tA bad one.\n"),
        ("turned.tsv", "A good film.\tpos\nA bad one.\tneg\n"),
        ("comma.csv", 'text,label\n"A good film.",pos\nA bad one.,neg\n'),
        ("lines.jsonl", '{"text": "A good film.", "label": "pos"}\n{"text": "A bad one.", "label": "neg"}\n'),
        ("spaced.txt", "pos A good film.\nneg A bad one.\n"),
        ("spaced", "pos A good film.\nneg A bad one.\n"),
    ],
)
def test_the_forms_agree(name: str, text: str, tmp_path: Path) -> None:
    assert pairs(Reading(tmp_path, "labelled", name), text) == EXPECTED


def test_the_label_is_on_item_and_sentence(sample: Reading) -> None:
    corpus = sample.read("1\tA good film.\n0\tA bad one.\n")
    assert [(item.label, item.parts[0].label, item.id) for item in corpus] == [("1", "1", "1"), ("0", "0", "2")]
    assert corpus.layers["label"] == 2
    assert_surfaces(corpus)


def test_options_name_columns_by_header_or_number(sample: Reading) -> None:
    text = "stars\twords\tmore\n5\tA good film.\tx\n"
    assert pairs(sample, text, label="stars", text="Words") == [("5", "A good film.")]
    assert pairs(sample, "x\t5\tA good film.\n", label="2", text="3") == [("5", "A good film.")]
    assert pairs(sample, "5\tgood\n", label="1") == [("5", "good")]
    assert pairs(sample, "5\tgood\n", text="2") == [("5", "good")]


def test_what_cannot_be_told_is_asked_for(sample: Reading) -> None:
    sample.refused("a\tb\tc\n", "label=COLUMN")
    sample.refused("good\tpos\n", "label=COLUMN")
    sample.refused("label\ttext\npos\tgood\n", "no column 'stars'", label="stars")
    sample.refused("pos\tgood film\n", "no column '3'", label="3")


def test_numbers_and_truth_in_json_are_labels_as_text(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "labelled", "sample.jsonl")
    text = '{"text": "a", "label": 1}\n{"text": "b", "label": true}\n{"text": "c", "label": 0.5}\n'
    assert [label for label, _ in pairs(sample, text)] == ["1", "true", "0.5"]


def test_a_quoted_cell_may_run_over_lines(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "labelled", "sample.csv")
    assert pairs(sample, 'label,text\n1,"a ""b""\n\nc"\n\n0,d\n') == [("1", 'a "b"\n\nc'), ("0", "d")]


@pytest.mark.parametrize(
    ("name", "text", "reason", "line"),
    [
        ("a.tsv", "label\ttext\npos\tgood\nbad\npos\tgood\n", "wrong column count", 3),
        ("a.tsv", "label\ttext\npos\tgood\n\tbad\npos\tgood\n", "missing label", 3),
        ("a.tsv", "label\ttext\npos\tgood\nneg\t \npos\tgood\n", "missing text", 3),
        ("a.csv", 'label,text\npos,good\nneg,"bad" one\npos,good\n', "invalid CSV", 3),
        ("a.csv", 'label,text\npos,good\npos,good\nneg,"bad\n', "invalid CSV", 4),
        ("a.jsonl", '{"label": 1, "text": "a"}\n{"label": 1,\n{"label": 1, "text": "a"}\n', "invalid JSON", 2),
        ("a.jsonl", '{"label": 1, "text": "a"}\n{"label": 1}\n{"label": 1, "text": "a"}\n', "missing text", 2),
        ("a.jsonl", '{"label": 1, "text": "a"}\n[1]\n{"label": 1, "text": "a"}\n', "wrong value", 2),
        (
            "a.jsonl",
            '{"label": 1, "text": "a"}\n{"label": 1, "text": "\\ud800"}\n{"label": 1, "text": "a"}\n',
            "not UTF-8",
            2,
        ),
        ("a.txt", "pos good\nneg\npos good\n", "missing text", 2),
    ],
)
def test_a_broken_row_is_refused_or_counted(name: str, text: str, reason: str, line: int, tmp_path: Path) -> None:
    Reading(tmp_path, "labelled", name).bad(text, reason, line=line, kept=2)


@pytest.mark.parametrize(("name", "labels"), [("mr", {"0", "1"}), ("imdb", {"0", "1"}), ("ag", {"0", "1", "2", "3"})])
def test_real_files(name: str, labels: set[str]) -> None:
    corpus = read(shared(f"data/sentiment/{name}"))
    assert (len(corpus), corpus.format, corpus.skipped) == (1000, "labelled", ())
    assert {item.label for item in corpus} == labels
    assert_surfaces(corpus)
