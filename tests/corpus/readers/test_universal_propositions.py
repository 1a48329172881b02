"""Universal Propositions: frames with arguments as single words or as phrases."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import SemanticFrame, Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "universal_propositions", "sample.conllu")


def row(number: int, form: str, governor: int | str, *columns: str) -> str:
    return "\t".join((str(number), form, form, "X", "_", "_", str(governor), "dep", "_", "_", *columns))


#       the  cook  who  sang  left  it
ROWS = (
    row(1, "the", 2, "_", "_", "_"),
    row(2, "cook", 5, "_", "ARG0", "ARG0"),
    row(3, "who", 4, "_", "R-ARG0", "_"),
    row(4, "sang", 2, "sing.01", "V", "_"),
    row(5, "left", 0, "leave.01", "_", "V"),
    row(6, "it", 5, "_", "_", "ARG1"),
)
TEXT = "\n".join(ROWS) + "\n\n"


def test_arguments_are_single_words_by_default(sample: ReaderSample) -> None:
    assert sample.read(TEXT)[0].segments[0].frames == (
        SemanticFrame(3, "sing.01", (Span(1, 2, "ARG0"), Span(2, 3, "R-ARG0"))),
        SemanticFrame(4, "leave.01", (Span(1, 2, "ARG0"), Span(5, 6, "ARG1"))),
    )


def test_arguments_as_phrases_exclude_the_predicate(sample: ReaderSample) -> None:
    frames = sample.read(TEXT, arguments="subtree")[0].segments[0].frames
    assert frames is not None
    sang, left = frames
    assert sang.arguments == (Span(0, 2, "ARG0"), Span(2, 3, "R-ARG0"))
    assert left.arguments == (Span(0, 4, "ARG0"), Span(5, 6, "ARG1"))
    with pytest.raises(Exception, match="subtree"):
        sample.read(TEXT, arguments="subtrees")


def test_a_discontinuous_phrase_is_reduced_and_counted(sample: ReaderSample) -> None:
    rows = (row(1, "a", 3, "_", "_"), row(2, "go", 0, "go.01", "V"), row(3, "b", 2, "_", "ARG1"))
    corpus = sample.read("\n".join(rows), arguments="subtree")
    assert corpus[0].segments[0].frames == (SemanticFrame(1, "go.01", (Span(2, 3, "ARG1"),)),)
    assert [skip.reason for skip in corpus.skipped] == ["discontinuous arguments reduced to one span"]


def test_the_particle_of_a_predicate_is_not_an_argument(sample: ReaderSample) -> None:
    corpus = sample.read(row(1, "drop", 0, "drop.02", "V") + "\n" + row(2, "by", 1, "_", "V"))
    assert corpus[0].segments[0].frames == (SemanticFrame(0, "drop.02", ()),)
    assert [skip.reason for skip in corpus.skipped] == ["additional words of predicates ignored"]


def test_a_sentence_without_predicates_has_no_frames_and_an_unannotated_one_is_skipped(
    sample: ReaderSample,
) -> None:
    bare = row(1, "Oh", 0, "_", "_") + "\n\n"
    corpus = sample.read(bare + "# propbank = no-up\n" + bare)
    assert [sentence.frames for sentence in corpus.sentences] == [()]
    assert [skip.reason for skip in corpus.skipped] == ["sentences without propositions skipped"]


@pytest.mark.parametrize(
    ("bad", "reason", "line"),
    [
        (row(1, "go", 0, "go.01"), "wrong column count", 1),
        (row(1, "go", 0, "go.01", "V") + "\n" + row(2, "on", 1, "_"), "wrong column count", 2),
        (row(1, "go", 0, "_", "ARG1"), "role without predicate", 1),
        (row(1, "go", 7, "_", "_"), "governor out of range", 1),
        ("# global.columns = ID FORM UP:PRED\n" + row(1, "go", 0, "go.01", "V"), "other version", 1),
    ],
)
def test_a_malformed_sentence_is_refused_or_counted(bad: str, reason: str, line: int, sample: ReaderSample) -> None:
    sample.assert_malformed(bad + "\n\n" + TEXT, reason, line=line, n_examples=1)


def test_phrases_require_a_tree(sample: ReaderSample) -> None:
    rows = (row(1, "go", "_", "go.01", "V"), row(2, "on", "_", "_", "ARG1"))
    sample.assert_malformed(
        "\n".join(rows) + "\n\n" + TEXT, "missing governor", line=1, n_examples=1, arguments="subtree"
    )


def test_the_english_web_treebank() -> None:
    path = shared("data/srl/en_ewt-up-dev.conllu")
    corpus = read(path)
    rows = [line.split("\t") for line in path.read_text().splitlines() if line[:1].isdigit()]
    predicates = sum(row[10] not in {"", "_"} for row in rows)
    assert (len(corpus), corpus.format) == (2002 - 28, "universal_propositions")
    assert sum(len(sentence.frames or ()) for sentence in corpus.sentences) == predicates
    roles = sum(cell not in {"", "_", "V", "C-V"} for row in rows for cell in row[11:])
    assert sum(len(frame.arguments) for sentence in corpus.sentences for frame in sentence.frames or ()) == roles
    assert path.read_text().count("# propbank = no-up") == 28
    assert {skip.reason for skip in corpus.skipped} == {
        "empty tokens ignored",
        "sentences without propositions skipped",
        "additional words of predicates ignored",
    }
    assert_offsets_match(corpus)
    assert len(read(path, arguments="subtree")) == 2002 - 28
