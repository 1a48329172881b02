"""CoNLL-2012 columns: clusters of a document, names, unmatched brackets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "conll2012", "sample.conll")


def row(number: int | str, word: str, mention: str = "-", pos: str = "-", name: str = "*", part: str = "000") -> str:
    return f"story {part} {number} {word} {pos} * - - - Ann {name} {mention}"


def document(*sentences: tuple[str, ...]) -> str:
    body = "\n\n".join("\n".join(rows) for rows in sentences)
    return f"#begin document (story); part 000\n{body}\n\n#end document\n"


GOOD = (row(0, "She", "(0)"),)


def test_mentions_have_clusters_and_sentences_have_documents(sample: ReaderSample) -> None:
    first = (row(0, "Ann", "(0)"), row(1, "and", "-"), row(2, "her", "(1|(0)"), row(3, "dog", "1)"))
    corpus = sample.read(document(first, GOOD))
    assert corpus[0].segments[0].mentions == (Span(0, 1, "0"), Span(2, 4, "1"), Span(2, 3, "0"))
    assert corpus[1].segments[0].mentions == (Span(0, 1, "0"),)
    assert {sentence.document for sentence in corpus.sentences} == {"story_0"}
    assert [example.id for example in corpus] == ["story_0-1", "story_0-2"]
    assert_offsets_match(corpus)


def test_a_closing_bracket_closes_the_innermost_mention_of_its_cluster(sample: ReaderSample) -> None:
    rows = (row(0, "a", "(0"), row(1, "b", "(0"), row(2, "c", "0)"), row(3, "d", "0)"))
    assert sample.read(document(rows))[0].segments[0].mentions == (Span(0, 4, "0"), Span(1, 3, "0"))


def test_parts_of_speech_and_names_are_read_if_present(sample: ReaderSample) -> None:
    rows = (
        row(0, "New", pos="NNP", name="(GPE*"),
        row(1, "York", pos="NNP", name="*)"),
        row(2, "Eve", pos="NNP", name="(PERSON)"),
    )
    sentence = sample.read(document(rows))[0].segments[0]
    assert sentence.pos == ("NNP", "NNP", "NNP")
    assert sentence.entities == (Span(0, 2, "GPE"), Span(2, 3, "PERSON"))
    assert sample.read(document(GOOD))[0].segments[0].pos is None


def test_each_part_is_a_document(sample: ReaderSample) -> None:
    corpus = sample.read(document(GOOD) + document((row(0, "It", "(0)", part="001"),)))
    assert [sentence.document for sentence in corpus.sentences] == ["story_0", "story_1"]


@pytest.mark.parametrize(
    ("rows", "reason", "line"),
    [
        ((row(0, "a", "(0"),), "unmatched bracket", 2),
        ((row(0, "a", "0)"),), "unmatched bracket", 2),
        ((row(0, "a", "(1)"), row(1, "b", "7")), "wrong bracket", 3),
        ((row(0, "a"), row(2, "b")), "word number out of order", 3),
        ((row(0, "a"), row(0, "b")), "word number out of order", 3),
        ((row("x", "a"),), "word number out of order", 2),
        ((row(0, "a"), "story 0 1 b"), "wrong column count", 3),
        ((row(0, "a", name="(ORG*"),), "unmatched bracket", 2),
        ((row(0, "a", name="*)"),), "wrong bracket", 2),
        ((row(0, "a").replace(" ", "\t").replace("\ta\t", "\t\t"),), "empty word", 2),
    ],
)
def test_a_malformed_sentence_is_refused_or_counted(
    rows: tuple[str, ...], reason: str, line: int, sample: ReaderSample
) -> None:
    sample.assert_malformed(document(rows, GOOD), reason, line=line, n_examples=1)


def test_all_files_of_a_directory_are_read(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "conll2012", "b.v4_gold_conll")
    sample.write(document(GOOD))
    sample.write(document(GOOD).replace("story", "tale"), "inner/a.conll")
    sample.write("not read", "notes.txt")
    corpus = read(tmp_path)
    assert corpus.format == "conll2012"
    assert [example.source for example in corpus] == ["b.v4_gold_conll", "a.conll"]


def test_litbank() -> None:
    directory = shared("data/coref/litbank")
    corpus = read(directory)
    rows = [line.split("\t") for path in directory.iterdir() for line in path.read_text().splitlines() if "\t" in line]
    assert (len(corpus), corpus.format, corpus.skipped) == (5432, "conll2012", ())
    assert sum(len(sentence) for sentence in corpus.sentences) == len(rows) == 125416
    assert sum(len(sentence.mentions or ()) for sentence in corpus.sentences) == sum(row[-1].count("(") for row in rows)
    assert len({sentence.document for sentence in corpus.sentences}) == 60
    assert_offsets_match(corpus)
