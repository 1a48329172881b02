"""CoNLL columns: inferred columns, the three schemes, documents, and malformed tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "conll", "sample.conll")


GOOD = "Ann\tB-PER\nleft\tO\n\n"


def test_two_columns_are_words_and_entities(sample: ReaderSample) -> None:
    corpus = sample.read("New\tB-LOC\nYork\tI-LOC\nBob\tB-PER\nEve\tB-PER\n\n" + GOOD)
    sentence = corpus[0].segments[0]
    assert sentence.entities == (Span(0, 2, "LOC"), Span(2, 3, "PER"), Span(3, 4, "PER"))
    assert sentence.tags == ("B-LOC", "I-LOC", "B-PER", "B-PER")
    assert (sentence.pos, sentence.chunks, sentence.document) == (None, None, "")
    assert [example.id for example in corpus] == ["1", "6"]
    assert_offsets_match(corpus)


def test_four_columns_are_those_of_conll_2003(sample: ReaderSample) -> None:
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nacts VBZ I-VP O\n\n-DOCSTART- -X- O O\n\nNo UH O O\n"
    first, second = sample.read(text).sentences
    assert first.pos == ("NNP", "VBZ")
    assert first.chunks == (Span(0, 1, "NP"), Span(1, 2, "VP"))
    assert first.entities == (Span(0, 1, "ORG"),)
    assert first.tags == ("B-ORG", "O"), "tags are BIO whatever the scheme of the file"
    assert (first.document, second.document) == ("1", "2")
    assert second.entities == ()


def test_a_column_of_phrases_is_the_chunks(sample: ReaderSample) -> None:
    sentence = sample.read("The DT B-NP\ndog NN I-NP\nran VBD B-VP\n")[0].segments[0]
    assert sentence.chunks == (Span(0, 2, "NP"), Span(2, 3, "VP"))
    assert sentence.entities is None
    assert sentence.tags == ("B-NP", "I-NP", "B-VP")


def test_options_name_the_columns(sample: ReaderSample) -> None:
    text = "1\tNN\tdog\tB-X\tO\n"
    sentence = sample.read(text, words="3", pos="2", entities="4", chunks="none")[0].segments[0]
    assert (sentence.words, sentence.pos, sentence.entities, sentence.chunks) == (
        ("dog",),
        ("NN",),
        (Span(0, 1, "X"),),
        None,
    )
    assert sample.read(text, words="3", entities="none")[0].segments[0].entities is None
    sample.assert_refused(text, "from 1 to 5", words="6")
    sample.assert_refused(text, "from 1 to 5", entities="last")
    with pytest.raises(Exception, match="scheme"):
        sample.read(text, scheme="biose")


def test_bioes_and_bilou(sample: ReaderSample) -> None:
    text = "a B-X\nb I-X\nc E-X\nd S-Y\n\ne U-Z\nf B-Z\ng L-Z\n"
    first, second = sample.read(text).sentences
    assert first.entities == (Span(0, 3, "X"), Span(3, 4, "Y"))
    assert second.entities == (Span(0, 1, "Z"), Span(1, 3, "Z"))


def test_iob1_is_read_if_the_whole_file_is_iob1(sample: ReaderSample) -> None:
    sentence = sample.read("a I-X\nb B-X\nc O\nd I-Y\n")[0].segments[0]
    assert sentence.entities == (Span(0, 1, "X"), Span(1, 2, "X"), Span(3, 4, "Y"))
    mixed = "a B-X\nb O\n\nc I-X\n\n"
    sample.assert_malformed(mixed, "I- without B-", line=4, n_examples=1)
    assert len(sample.read(mixed, scheme="iob1")) == 2


@pytest.mark.parametrize(
    ("bad", "reason", "line"),
    [
        ("a\tB-X\nb\n\n", "wrong column count", 4 + 1),
        ("a\tB-X\tmore\n\n", "wrong column count", 4),
        ("\tO\n\n", "empty word", 4),
        ("a\tX\n\n", "wrong tag", 4),
        ("a\tI-PER\n\n", "I- without B-", 4),
        ("a\tB-PER\nb\tI-LOC\n\n", "I- without B-", 5),
    ],
)
def test_a_malformed_sentence_is_refused_or_counted(bad: str, reason: str, line: int, sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + bad + GOOD, reason, line=line, n_examples=2, entities="2")


def test_an_open_span_in_bioes_is_refused(sample: ReaderSample) -> None:
    sample.assert_malformed("a S-X\n\nb B-X\nc O\n", "B- without E-", line=4, n_examples=1)


def test_a_sentence_with_a_line_that_is_not_utf8_is_skipped_entirely(sample: ReaderSample) -> None:
    sample.assert_malformed(b"a\tO\n\xe9\tO\nb\tO\n\n" + GOOD.encode(), "not UTF-8", line=2, n_examples=1)


def test_comment_lines_contain_the_id(sample: ReaderSample) -> None:
    corpus = sample.read("# id abc domain=en\n# O\ndog O\n\n")
    assert (corpus[0].id, corpus[0].segments[0].words) == ("abc", ("#", "dog"))


@pytest.mark.parametrize(
    ("path", "sentences", "words", "entities"),
    [
        ("data/ner/wnut17train.conll", 3394, 62730, 1975),
        ("data/ner/emerging.dev.conll", 1009, 15733, 836),
        ("data/ner/crossner-ai/train.txt", 100, 3782, None),
        ("data/ner/crossner-politics/test.txt", 651, 27585, None),
    ],
)
def test_real_files(path: str, sentences: int, words: int, entities: int | None) -> None:
    file = shared(path)
    corpus = read(file)
    assert (len(corpus), corpus.format, corpus.skipped) == (sentences, "conll", ())
    assert sum(len(sentence) for sentence in corpus.sentences) == words
    n_starts = sum(line.split("\t")[1].startswith("B-") for line in file.read_text().splitlines() if "\t" in line)
    assert sum(len(sentence.entities or ()) for sentence in corpus.sentences) == n_starts == (entities or n_starts)
    assert_offsets_match(corpus)
