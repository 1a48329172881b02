"""Plain text: a sentence a line, a document a run of lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "text", "sample.txt")


def test_lines_are_sentences_and_blank_lines_end_documents(sample: Reading) -> None:
    corpus = sample.read("\n\nA dog barks.\nIt stops!\n\n\n  A cat's-eye.  \n")
    assert [part.words for part in corpus.sentences] == [
        ("A", "dog", "barks", "."),
        ("It", "stops", "!"),
        ("A", "cat's-eye", "."),
    ]
    assert [part.document for part in corpus.sentences] == ["1", "1", "2"]
    assert [item.id for item in corpus] == ["3", "4", "7"]
    assert_surfaces(corpus)


def test_words_at_blanks_for_tokenised_text(sample: Reading) -> None:
    assert sample.read("ca n't , can it ?\n", words="spaces")[0].parts[0].words == ("ca", "n't", ",", "can", "it", "?")
    with pytest.raises(Exception, match="Did you mean 'spaces'"):
        sample.read("a b", words="space")


def test_a_line_that_is_not_utf8_is_no_document_boundary(sample: Reading) -> None:
    content = b"one\n\xff\ntwo\n"
    sample.bad(content, "not UTF-8", line=2, kept=2)
    assert {part.document for part in sample.read(content, skip_bad=True).sentences} == {"1"}


def test_reading_is_lazy_and_opens_archives() -> None:
    corpus = read(shared("data/text/open-english.txt.xz"), limit=500)
    assert (len(corpus), corpus.format) == (500, "text")
    assert_surfaces(corpus)
