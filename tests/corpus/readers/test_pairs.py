"""Sentence pairs: headers of GLUE, tables without header, unlabelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "pairs", "sample.tsv")


def triples(sample: ReaderSample, content: str, /, **options: Any) -> list[tuple[str | None, ...]]:
    return [
        (example.label, *(sentence.text for sentence in example.segments))
        for example in sample.read(content, **options)
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "label\tpremise\thypothesis\nyes\tA b.\tC d.\n"),
        ("a.tsv", "index\tsentence1\tsentence2\tlabel1\tgold_label\n0\tA b.\tC d.\tno\tyes\n"),
        ("a.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\nyes\t1\t2\tA b.\tC d.\n"),
        ("a.tsv", "id\tquestion1\tquestion2\tis_duplicate\n0\tA b.\tC d.\tyes\n"),
        ("a.tsv", "index\tquestion\tsentence\tlabel\n0\tA b.\tC d.\tyes\n"),
        ("a.tsv", "pair_ID\tsentence_A\tsentence_B\tentailment_label\n0\tA b.\tC d.\tyes\n"),
        ("a", "yes\tA b.\tC d.\n"),
        ("a.csv", 'label,text_a,text_b\nyes,"A b.","C d."\n'),
        ("a.jsonl", '{"gold_label": "yes", "sentence1": "A b.", "sentence2": "C d.", "annotator_labels": ["yes"]}\n'),
    ],
)
def test_all_variants_give_the_same_examples(name: str, text: str, tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "pairs", name)
    assert triples(sample, text) == [("yes", "A b.", "C d.")]
    assert sample.read(text)[0].kind == "pair"


def test_options_name_the_columns(sample: ReaderSample) -> None:
    assert triples(sample, "x\tA.\tB.\tno\n", first="2", second="3", label="4") == [("no", "A.", "B.")]
    assert triples(sample, "left\tright\nA.\tB.\n", first="left", second="right") == [(None, "A.", "B.")]
    sample.assert_refused("a\tb\n", "first=COLUMN")
    sample.assert_refused("x\tA.\tB.\n", "no column", first="9")


def test_quotation_marks_in_tab_separated_cells_are_part_of_the_text(sample: ReaderSample) -> None:
    assert triples(sample, 'yes\t"A b.\tC "d."\n') == [("yes", '"A b.', 'C "d."')]


def test_pairs_without_majority_label_are_counted_and_skipped(sample: ReaderSample) -> None:
    corpus = sample.read("gold_label\tsentence1\tsentence2\n-\tA.\tB.\nyes\tA.\tB.\n")
    assert len(corpus) == 1
    assert [(skip.reason, skip.location[-6:]) for skip in corpus.skipped] == [
        ("examples without gold label skipped", "line 2")
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("yes\tA.\n", "wrong column count"),
        ("\tA.\tB.\n", "missing label"),
        ("yes\t\tB.\n", "missing first text"),
        ("yes\tA.\t\n", "missing second text"),
    ],
)
def test_a_malformed_row_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed("yes\tA.\tB.\n" + bad + "no\tA.\tB.\n", reason, line=2, n_examples=2)


@pytest.mark.parametrize("name", ["snli", "mnli_matched", "mnli_mismatched"])
def test_real_files(name: str) -> None:
    corpus = read(shared(f"data/nli/{name}"))
    assert (len(corpus), corpus.format, corpus.skipped) == (1000, "pairs", ())
    assert {example.label for example in corpus} == {"entailment", "neutral", "contradiction"}
    assert_offsets_match(corpus)


def test_other_columns_are_labels_under_their_names(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("gold_label\tgenre\tpremise\thypothesis\nneutral\tfiction\tA dog.\tA cat.\n")
    corpus = read(path)
    assert (corpus[0].label, dict(corpus[0].labels)) == ("neutral", {"gold_label": "neutral", "genre": "fiction"})
