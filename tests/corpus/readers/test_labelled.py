"""Labelled sentences: headers, options, JSON lines, CSV, and labels separated by a space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "labelled", "sample.tsv")


def labels_and_texts(sample: ReaderSample, content: str, /, **options: Any) -> list[tuple[str | None, str]]:
    return [(example.label, example.segments[0].text) for example in sample.read(content, **options)]


EXPECTED = [("pos", "A good film."), ("neg", "A bad one.")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("header.tsv", "label\ttext\npos\tA good film.\nneg\tA bad one.\n"),
        ("other.tsv", "idx\tSentence\tGold_Label\n0\tA good film.\tpos\n1\tA bad one.\tneg\n"),
        ("bare.tsv", "pos\tA good film.\nneg\tA bad one.\n"),
        ("reversed.tsv", "A good film.\tpos\nA bad one.\tneg\n"),
        ("comma.csv", 'text,label\n"A good film.",pos\nA bad one.,neg\n'),
        ("lines.jsonl", '{"text": "A good film.", "label": "pos"}\n{"text": "A bad one.", "label": "neg"}\n'),
        ("spaced.txt", "pos A good film.\nneg A bad one.\n"),
        ("spaced", "pos A good film.\nneg A bad one.\n"),
    ],
)
def test_all_variants_give_the_same_examples(name: str, text: str, tmp_path: Path) -> None:
    assert labels_and_texts(ReaderSample(tmp_path, "labelled", name), text) == EXPECTED


def test_example_and_sentence_have_the_label(sample: ReaderSample) -> None:
    corpus = sample.read("1\tA good film.\n0\tA bad one.\n")
    assert [(example.label, example.segments[0].label, example.id) for example in corpus] == [
        ("1", "1", "1"),
        ("0", "0", "2"),
    ]
    assert corpus.annotations["label"] == 2
    assert_offsets_match(corpus)


def test_options_name_columns_by_header_or_number(sample: ReaderSample) -> None:
    text = "stars\twords\tmore\n5\tA good film.\tx\n"
    assert labels_and_texts(sample, text, label="stars", text="Words") == [("5", "A good film.")]
    assert labels_and_texts(sample, "x\t5\tA good film.\n", label="2", text="3") == [("5", "A good film.")]
    assert labels_and_texts(sample, "5\tgood\n", label="1") == [("5", "good")]
    assert labels_and_texts(sample, "5\tgood\n", text="2") == [("5", "good")]


def test_ambiguous_columns_are_refused(sample: ReaderSample) -> None:
    sample.assert_refused("a\tb\tc\n", "label=COLUMN")
    sample.assert_refused("good\tpos\n", "label=COLUMN")
    sample.assert_refused("label\ttext\npos\tgood\n", "no column 'stars'", label="stars")
    sample.assert_refused("pos\tgood film\n", "no column '3'", label="3")


def test_numbers_and_booleans_in_json_become_text(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "labelled", "sample.jsonl")
    text = '{"text": "a", "label": 1}\n{"text": "b", "label": true}\n{"text": "c", "label": 0.5}\n'
    assert [label for label, _ in labels_and_texts(sample, text)] == ["1", "true", "0.5"]


def test_a_quoted_cell_can_contain_line_breaks(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "labelled", "sample.csv")
    assert labels_and_texts(sample, 'label,text\n1,"a ""b""\n\nc"\n\n0,d\n') == [("1", 'a "b"\n\nc'), ("0", "d")]


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
def test_a_malformed_row_is_refused_or_counted(name: str, text: str, reason: str, line: int, tmp_path: Path) -> None:
    ReaderSample(tmp_path, "labelled", name).assert_malformed(text, reason, line=line, n_examples=2)


@pytest.mark.parametrize(("name", "labels"), [("mr", {"0", "1"}), ("imdb", {"0", "1"}), ("ag", {"0", "1", "2", "3"})])
def test_real_files(name: str, labels: set[str]) -> None:
    corpus = read(shared(f"data/sentiment/{name}"))
    assert (len(corpus), corpus.format, corpus.skipped) == (1000, "labelled", ())
    assert {example.label for example in corpus} == labels
    assert_offsets_match(corpus)


def test_every_column_is_a_label_under_its_name(sample: ReaderSample) -> None:
    table = "id\tText\tTopic\tsentiment\n1\tA film.\twar\tgood\n2\tA book.\t\tbad\n"
    corpus = sample.read(table)
    assert [example.label for example in corpus] == ["good", "bad"]
    assert [dict(example.labels) for example in corpus] == [
        {"id": "1", "Topic": "war", "sentiment": "good"},
        {"id": "2", "sentiment": "bad"},
    ]


def test_a_table_needs_no_column_called_label(tmp_path: Path) -> None:
    for name, text in (("a.tsv", "text\ttopic\nA film.\twar\n"), ("a.jsonl", '{"text": "A film.", "topic": "war"}\n')):
        (tmp_path / name).write_text(text)
        corpus = read(tmp_path / name)
        assert (corpus.format, corpus[0].label, dict(corpus[0].labels)) == ("labelled", None, {"topic": "war"})


def test_a_column_called_label_has_no_second_name(sample: ReaderSample) -> None:
    assert dict(sample.read("label\ttext\ngood\tA film.\n")[0].labels) == {}


def test_columns_of_long_cells_are_no_labels(sample: ReaderSample) -> None:
    long = "word " * 40
    assert dict(sample.read(f"label\ttext\tcomment\ngood\tA film.\t{long}\n")[0].labels) == {}
