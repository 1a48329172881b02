"""Plain text: one sentence per line, blank lines between documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "text", "sample.txt")


def test_lines_are_sentences_and_blank_lines_separate_documents(sample: ReaderSample) -> None:
    corpus = sample.read("\n\nA dog barks.\nIt stops!\n\n\n  A cat's-eye.  \n")
    assert [sentence.words for sentence in corpus.sentences] == [
        ("A", "dog", "barks", "."),
        ("It", "stops", "!"),
        ("A", "cat's-eye", "."),
    ]
    assert [sentence.document for sentence in corpus.sentences] == ["1", "1", "2"]
    assert [example.id for example in corpus] == ["3", "4", "7"]
    assert_offsets_match(corpus)


def test_tokenised_text_can_be_split_at_spaces(sample: ReaderSample) -> None:
    assert sample.read("ca n't , can it ?\n", words="spaces")[0].segments[0].words == (
        "ca",
        "n't",
        ",",
        "can",
        "it",
        "?",
    )
    with pytest.raises(Exception, match="Did you mean 'spaces'"):
        sample.read("a b", words="space")


def test_a_line_that_is_not_utf8_does_not_separate_documents(sample: ReaderSample) -> None:
    content = b"one\n\xff\ntwo\n"
    sample.assert_malformed(content, "not UTF-8", line=2, n_examples=2)
    assert {sentence.document for sentence in sample.read(content, skip_malformed=True).sentences} == {"1"}


def test_the_first_sentences_of_a_compressed_file_are_read() -> None:
    corpus = read(shared("data/text/open-english.txt.xz"), limit=500)
    assert (len(corpus), corpus.format) == (500, "text")
    assert_offsets_match(corpus)
