"""CoNLL-U: trees, multi-word tokens, empty nodes, annotations in MISC, and all kinds of malformed trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import read
from bertology.corpus.sentence import ROOT, Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "conllu", "sample.conllu")


def row(number: int | str, form: str, governor: int | str = "_", relation: str = "_", misc: str = "_") -> str:
    return f"{number}\t{form}\t{form.lower()}\tX\t_\t_\t{governor}\t{relation}\t_\t{misc}"


def sentence_lines(*rows: str, comments: tuple[str, ...] = ()) -> str:
    return "\n".join((*comments, *rows)) + "\n\n"


GOOD = sentence_lines(row(1, "Dogs", 2, "nsubj"), row(2, "bark", 0, "root"), comments=("# sent_id = good",))


def test_governors_count_from_zero_and_the_root_has_minus_one(sample: ReaderSample) -> None:
    (example,) = sample.read(GOOD)
    sentence = example.segments[0]
    assert sentence.words == ("Dogs", "bark")
    assert sentence.governors == (1, ROOT)
    assert sentence.relations == ("nsubj", "root")
    assert sentence.lemmas == ("dogs", "bark")
    assert sentence.pos == ("X", "X")
    assert (example.id, sentence.id) == ("good", "good")
    assert (
        sentence.xpos is None
        and sentence.morphology is None
        and sentence.entities is None
        and sentence.mentions is None
    )


def test_without_a_text_comment_space_after_determines_the_text(sample: ReaderSample) -> None:
    corpus = sample.read(sentence_lines(row(1, "Stop", 0, "root", "SpaceAfter=No"), row(2, "!", 1), row(3, "Now", 1)))
    assert corpus[0].segments[0].text == "Stop! Now"
    assert_offsets_match(corpus)


def test_a_text_comment_determines_the_offsets(sample: ReaderSample) -> None:
    corpus = sample.read(sentence_lines(row(1, "Stop", 0, "root"), row(2, "!", 1), comments=("# text = Stop  !",)))
    assert corpus[0].segments[0].offsets == ((0, 4), (6, 7))
    sample.assert_malformed(
        sentence_lines(row(1, "Halt", 0), comments=("# text = Stop",)) + GOOD,
        "words do not match the text",
        line=1,
        n_examples=1,
    )


def test_the_words_of_a_multiword_token_have_parts_of_its_text(sample: ReaderSample) -> None:
    rows = (row("1-2", "Don't", misc="SpaceAfter=No"), row(1, "Do", 0), row(2, "n't", 1), row(3, "!", 1))
    corpus = sample.read(sentence_lines(*rows))
    assert corpus[0].segments[0].text == "Don't!"
    assert_offsets_match(corpus)


def test_the_words_of_a_contraction_all_have_its_text(sample: ReaderSample) -> None:
    rows = (row(1, "Vin", 0), row("2-3", "du"), row(2, "de", 4), row(3, "le", 4), row(4, "pays", 1))
    sentence = sample.read(sentence_lines(*rows, comments=("# text = Vin du pays",)))[0].segments[0]
    assert sentence.words == ("Vin", "de", "le", "pays")
    assert sentence.offsets == ((0, 3), (4, 6), (4, 6), (7, 11))


def test_empty_nodes_are_counted_and_ignored(sample: ReaderSample) -> None:
    corpus = sample.read(sentence_lines(row("0.1", "ghost"), row(1, "Go", 0), row("1.1", "ghost"), row(2, "on", 1)))
    assert corpus[0].segments[0].words == ("Go", "on")
    assert [(skip.reason, skip.location[-6:]) for skip in corpus.skipped] == [
        ("empty tokens ignored", "line 1"),
        ("empty tokens ignored", "line 3"),
    ]


def test_documents_begin_at_newdoc_even_in_a_skipped_sentence(sample: ReaderSample) -> None:
    malformed = sentence_lines(row(1, "x", 7), comments=("# newdoc id = second",))
    corpus = sample.read(
        GOOD + malformed + GOOD + sentence_lines(row(1, "x", 0), comments=("# newdoc",)), skip_malformed=True
    )
    assert [sentence.document for sentence in corpus.sentences] == ["", "second", "document 2"]


def test_entities_are_bio_tags_in_misc(sample: ReaderSample) -> None:
    rows = (row(1, "New", 0, misc="NER=B-LOC"), row(2, "York", 1, misc="NER=I-LOC|SpaceAfter=No"), row(3, ".", 1))
    assert sample.read(sentence_lines(*rows))[0].segments[0].entities == (Span(0, 2, "LOC"),)
    sample.assert_malformed(
        sentence_lines(row(1, "a", 0, misc="NER=I-LOC")) + GOOD, "I- without B-", line=1, n_examples=1
    )
    sample.assert_malformed(
        sentence_lines(row(1, "a", 0, misc="NER=")) + GOOD, "missing annotation", line=1, n_examples=1
    )


def test_senses_are_in_misc(sample: ReaderSample) -> None:
    rows = (row(1, "Banks", 0, misc="Sense=bank.n.02"), row(2, "close", 1))
    assert sample.read(sentence_lines(*rows))[0].segments[0].senses == ("bank.n.02", None)


def test_mentions_are_entity_brackets_in_misc(sample: ReaderSample) -> None:
    rows = (
        row(1, "Ann", 0, misc="Entity=(e1-person-1)"),
        row(2, "her", 1, misc="Entity=(e2-object-2(e1-person-1)"),
        row(3, "dog", 1, misc="Entity=e2)"),
    )
    sentence = sample.read(sentence_lines(*rows, comments=("# global.Entity = eid-etype-head",)))[0].segments[0]
    assert sentence.mentions == (Span(0, 1, "e1"), Span(1, 3, "e2"), Span(1, 2, "e1"))


def test_a_comment_determines_the_order_of_entity_attributes(sample: ReaderSample) -> None:
    first = sentence_lines(row(1, "Ann", 0, misc="Entity=(person-e1)"), comments=("# global.Entity = etype-eid",))
    corpus = sample.read(first + sentence_lines(row(1, "She", 0, misc="Entity=(person-e1)")))
    assert [sentence.mentions for sentence in corpus.sentences] == [(Span(0, 1, "e1"),)] * 2


def test_discontinuous_and_empty_mentions_are_counted_and_ignored(sample: ReaderSample) -> None:
    rows = (
        row(1, "a", 0, misc="Entity=(e1[1/2])"),
        row("1.1", "ghost", misc="Entity=(e2)(e3"),
        row(2, "b", 1, misc="Entity=e3)(e1[2/2])"),
    )
    corpus = sample.read(sentence_lines(*rows))
    assert corpus[0].segments[0].mentions == (Span(1, 2, "e3"),)
    reasons = sorted(skip.reason for skip in corpus.skipped)
    discontinuous = "parts of discontinuous mentions ignored"
    assert reasons == ["empty tokens ignored", "mentions of empty tokens ignored", discontinuous, discontinuous]


@pytest.mark.parametrize(
    ("rows", "reason", "line"),
    [
        ((row(1, "a", 2), row(2, "b", 1)), "no root", 1),
        ((row(1, "a", 0), row(2, "b", 3), row(3, "c", 2)), "cycle", 2),
        ((row(1, "a", 0), row(2, "b", 2)), "cycle", 2),
        ((row(1, "a", 0), row(2, "b", 0)), "several roots", 2),
        ((row(1, "a", 0), row(2, "b", 9)), "governor out of range", 2),
        ((row(1, "a", 0), row(2, "b", "x")), "governor is not a number", 2),
        ((row(1, "a", 0), row(2, "b", "-1")), "governor is not a number", 2),
        ((row(1, "a", 0), row(2, "b", "_")), "missing governor", 2),
        ((row(1, "a", 0), row(1, "b", 1)), "id out of order", 2),
        ((row(1, "a", 0), row(3, "b", 1)), "id out of order", 2),
        ((row("one", "a", 0),), "id is not a number", 1),
        ((row("1-5", "ab"), row(1, "a", 0)), "id out of order", 1),
        ((row("2-1", "ab"), row(1, "a", 0)), "id out of order", 1),
        ((row("1-2", "ab"), row("1-3", "ab"), row(1, "a", 0), row(2, "b", 1)), "id out of order", 2),
        ((row("3.1", "ab"), row(1, "a", 0)), "id out of order", 1),
        ((row(1, "a", 0), row(2, "b", 1) + "\textra"), "wrong column count", 2),
        ((row(1, "a", 0), row(2, "b", 1).replace("\t", " ")), "wrong column count", 2),
        ((row(1, " ", 0),), "empty word", 1),
        (("# a comment alone",), "no words", 1),
        ((row(1, "a", 0, misc="Entity=(e1"),), "unmatched bracket", 1),
        ((row(1, "a", 0, misc="Entity=e1)"),), "unmatched bracket", 1),
        ((row(1, "a", 0, misc="Entity=e1"),), "wrong bracket", 1),
    ],
)
def test_a_malformed_sentence_is_refused_or_counted(
    rows: tuple[str, ...], reason: str, line: int, sample: ReaderSample
) -> None:
    sample.assert_malformed(sentence_lines(*rows) + GOOD, reason, line=line, n_examples=1)


def test_a_sentence_with_a_line_that_is_not_utf8_is_skipped_entirely(sample: ReaderSample) -> None:
    malformed = sentence_lines(row(1, "a", 0), row(2, "é", 1)).encode("latin1")
    sample.assert_malformed(malformed + GOOD.encode(), "not UTF-8", line=2, n_examples=1)


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(sample: ReaderSample) -> None:
    plain = sample.read(GOOD)
    assert sample.read(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).fingerprint == plain.fingerprint


def counts(corpus: Corpus) -> tuple[int, int, int]:
    return (
        len(corpus),
        sum(len(sentence) for sentence in corpus.sentences),
        len({sentence.document for sentence in corpus.sentences}),
    )


def test_the_english_web_treebank() -> None:
    corpus = read(shared("data/ud/en_ewt-ud-dev.conllu"))
    assert counts(corpus) == (2001, 25147, 318)
    assert [skip.reason for skip in corpus.skipped] == ["empty tokens ignored"] * 4
    assert corpus.annotations["governors"] == corpus.annotations["pos"] == 2001
    assert_offsets_match(corpus)


def test_the_training_split_of_the_english_web_treebank() -> None:
    corpus = read(shared("data/ud/en_ewt-ud-train.conllu"))
    assert counts(corpus) == (12544, 204577, 540)
    assert len(corpus.skipped) == 37
    assert_offsets_match(corpus)


def test_the_chinese_treebank() -> None:
    corpus = read(shared("data/ud/zh_gsdsimp-ud-dev.conllu"))
    assert counts(corpus) == (500, 12663, 1)
    assert_offsets_match(corpus)
