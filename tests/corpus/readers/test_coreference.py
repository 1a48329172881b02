"""Coreference columns: clusters over a document, names, brackets that do not match."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "coreference", "sample.conll")


def row(number: int | str, word: str, mention: str = "-", pos: str = "-", name: str = "*", part: str = "000") -> str:
    return f"story {part} {number} {word} {pos} * - - - Ann {name} {mention}"


def document(*sentences: tuple[str, ...]) -> str:
    body = "\n\n".join("\n".join(rows) for rows in sentences)
    return f"#begin document (story); part 000\n{body}\n\n#end document\n"


GOOD = (row(0, "She", "(0)"),)


def test_mentions_carry_their_cluster_and_sentences_their_document(sample: Reading) -> None:
    first = (row(0, "Ann", "(0)"), row(1, "and", "-"), row(2, "her", "(1|(0)"), row(3, "dog", "1)"))
    corpus = sample.read(document(first, GOOD))
    assert corpus[0].parts[0].mentions == (Span(0, 1, "0"), Span(2, 4, "1"), Span(2, 3, "0"))
    assert corpus[1].parts[0].mentions == (Span(0, 1, "0"),)
    assert {part.document for part in corpus.sentences} == {"story_0"}
    assert [item.id for item in corpus] == ["story_0-1", "story_0-2"]
    assert_surfaces(corpus)


def test_a_nested_mention_of_the_same_cluster_closes_first(sample: Reading) -> None:
    rows = (row(0, "a", "(0"), row(1, "b", "(0"), row(2, "c", "0)"), row(3, "d", "0)"))
    assert sample.read(document(rows))[0].parts[0].mentions == (Span(0, 4, "0"), Span(1, 3, "0"))


def test_pos_and_names_are_read_where_filled_in(sample: Reading) -> None:
    rows = (
        row(0, "New", pos="NNP", name="(GPE*"),
        row(1, "York", pos="NNP", name="*)"),
        row(2, "Eve", pos="NNP", name="(PERSON)"),
    )
    part = sample.read(document(rows))[0].parts[0]
    assert part.pos == ("NNP", "NNP", "NNP")
    assert part.entities == (Span(0, 2, "GPE"), Span(2, 3, "PERSON"))
    assert sample.read(document(GOOD))[0].parts[0].pos is None


def test_parts_are_documents_of_their_own(sample: Reading) -> None:
    corpus = sample.read(document(GOOD) + document((row(0, "It", "(0)", part="001"),)))
    assert [part.document for part in corpus.sentences] == ["story_0", "story_1"]


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
def test_a_broken_sentence_is_refused_or_counted(
    rows: tuple[str, ...], reason: str, line: int, sample: Reading
) -> None:
    sample.bad(document(rows, GOOD), reason, line=line, kept=1)


def test_a_folder_reads_all_its_files(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "coreference", "b.v4_gold_conll")
    sample.write(document(GOOD))
    sample.write(document(GOOD).replace("story", "tale"), "below/a.conll")
    sample.write("not read", "notes.txt")
    corpus = read(tmp_path)
    assert corpus.format == "coreference"
    assert [item.source for item in corpus] == ["b.v4_gold_conll", "a.conll"]


def test_litbank() -> None:
    folder = shared("data/coref/litbank")
    corpus = read(folder)
    rows = [line.split("\t") for path in folder.iterdir() for line in path.read_text().splitlines() if "\t" in line]
    assert (len(corpus), corpus.format, corpus.skipped) == (5432, "coreference", ())
    assert sum(len(part) for part in corpus.sentences) == len(rows) == 125416
    assert sum(len(part.mentions or ()) for part in corpus.sentences) == sum(row[-1].count("(") for row in rows)
    assert len({part.document for part in corpus.sentences}) == 60
    assert_surfaces(corpus)
