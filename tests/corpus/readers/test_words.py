"""Words with labels: tables with a header, numbered sentences, JSON lines, and malformed lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_valid

from bertology.corpus.read import read
from bertology.corpus.sentence import Span
from bertology.errors import Refusal

TABLE = """\
Token	NER	mood
Ann	B-PER	glad
Lee	I-PER	glad

It	O	sad
rains	O	sad
"""


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "words", "sample.tsv")


def test_every_column_is_a_word_label_under_its_name(sample: ReaderSample) -> None:
    corpus = sample.read(TABLE)
    first, second = corpus.sentences
    assert (first.words, second.words) == (("Ann", "Lee"), ("It", "rains"))
    assert dict(first.word_labels) == {"NER": ("B-PER", "I-PER"), "mood": ("glad", "glad")}
    assert dict(first.span_labels) == {"NER": (Span(0, 2, "PER"),)} and first.entities == (Span(0, 2, "PER"),)
    assert [example.id for example in corpus] == ["2", "5"]
    assert corpus.label_names.words == {"NER": 2, "mood": 2}


def test_the_format_is_recognised(sample: ReaderSample) -> None:
    assert read(sample.write(TABLE)).format == "words"
    csv = "Sentence #,Word,POS,Tag\nSentence: 1,Ann,NNP,B-per\n,sings,VBZ,O\nSentence: 2,Go,VB,O\n"
    corpus = read(sample.write(csv, "ner.csv"))
    assert corpus.format == "words" and [s.words for s in corpus.sentences] == [("Ann", "sings"), ("Go",)]
    assert corpus[0].segments[0].word_labels["Tag"] == ("B-per", "O")
    lines = [
        {"tokens": ["Ann", "sings"], "ner_tags": ["B-PER", "O"], "spans": [[0, 2, "all"]], "topic": "art"},
        {"tokens": ["Go"], "ner_tags": ["O"], "spans": [], "topic": "sport"},
    ]
    corpus = read(sample.write("".join(json.dumps(line) + "\n" for line in lines), "sample.jsonl"))
    assert_valid(corpus)
    assert corpus.format == "words" and [example.labels["topic"] for example in corpus] == ["art", "sport"]
    assert dict(corpus[0].segments[0].span_labels) == {"spans": (Span(0, 2, "all"),), "ner_tags": (Span(0, 1, "PER"),)}


def test_other_tables_are_not_taken_for_words(sample: ReaderSample) -> None:
    sentences = "word\tlabel\ttext\nbank\tmoney\tI went to the bank today.\n"
    assert read(sample.write(sentences)).format == "labelled"
    assert read(sample.write("label\ttext\na\tOne text.\nb\tAnother.\n", "other.tsv")).format == "labelled"


def test_columns_can_be_named(sample: ReaderSample) -> None:
    corpus = sample.read("n\tsurface\tcase\n1\tAnn\tnom\n1\tsings\t_\n2\tGo\t_\n", words="surface", sentence="n")
    assert [sentence.words for sentence in corpus.sentences] == [("Ann", "sings"), ("Go",)]
    sample.assert_refused("a\tb\nx\ty\n", "words=NAME")


@pytest.mark.parametrize(
    ("line", "reason"),
    [("It", "wrong column count"), ("\tO\tsad", "empty word"), ("It\tI-PER\tsad", "I- without B-")],
)
def test_malformed_lines_are_refused_or_counted(sample: ReaderSample, line: str, reason: str) -> None:
    sample.assert_malformed(TABLE + f"\n{line}\n", reason, line=8, n_examples=2)


def test_a_table_without_sentences_is_refused(sample: ReaderSample) -> None:
    with pytest.raises(Refusal, match="no examples"):
        sample.read("word\tner\n")
