"""Chunks from trees: noun phrases, verb groups, and words outside chunks."""

from __future__ import annotations

from dataclasses import replace

from bertology.corpus.chunking import runs_outside_chunks, sentence_chunks
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import Span, sentence_from_text, sentence_from_words


def test_the_chunks_of_a_sentence() -> None:
    words = [
        "The", "company", "'s", "old", "boats", "have", "not", "been", "sold", "in", "town", ",", "but", "they",
        "float",
    ]  # fmt: skip
    sentence = replace(
        sentence_from_words(words),
        governors=(1, 4, 1, 4, 8, 8, 8, 8, -1, 10, 8, 14, 14, 14, 8),
        relations=(
            "det", "nmod:poss", "case", "amod", "nsubj:pass", "aux", "advmod", "aux:pass", "root", "case", "obl",
            "punct", "cc", "nsubj", "conj",
        ),
        pos=(
            "DET", "NOUN", "PART", "ADJ", "NOUN", "AUX", "PART", "AUX", "VERB", "ADP", "NOUN", "PUNCT", "CCONJ",
            "PRON", "VERB",
        ),
    )  # fmt: skip
    chunks = sentence_chunks(sentence)
    assert chunks is not None
    assert [(span.label, " ".join(words[span.start : span.end])) for span in chunks] == [
        ("NP", "The company 's old boats"),
        ("VP", "have not been sold"),
        ("PP", "in"),
        ("NP", "town"),
        ("NP", "they"),
        ("VP", "float"),
    ]
    assert [" ".join(words[span.start : span.end]) for span in runs_outside_chunks(sentence, chunks)] == [", but"]


def test_chunks_and_the_runs_outside_them_cover_every_word_once() -> None:
    for sentence in load_corpus("english").sentences:
        chunks = sentence_chunks(sentence)
        assert chunks is not None
        spans = (*chunks, *runs_outside_chunks(sentence, chunks))
        assert sorted(word for s in spans for word in range(s.start, s.end)) == list(range(len(sentence)))


def test_annotated_chunks_take_precedence_and_plain_text_has_none() -> None:
    annotated = replace(sentence_from_text("a b"), chunks=(Span(0, 2, "X"),))
    assert sentence_chunks(annotated) == (Span(0, 2, "X"),)
    assert sentence_chunks(sentence_from_text("a b")) is None
