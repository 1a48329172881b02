"""Chunks from trees: noun phrases, verb groups, and what stands alone."""

from __future__ import annotations

from dataclasses import replace

from bertology.corpus.builtin import corpus_named
from bertology.corpus.sentence import Span, from_text, sentence
from bertology.corpus.tree_chunks import chunks_of, outside


def sentence_words(text: str) -> list[str]:
    return text.split()


def test_a_sentence_is_divided_as_by_hand() -> None:
    words = sentence_words("The company 's old boats have not been sold in town , but they float")
    own = replace(
        sentence(words),
        heads=(1, 4, 1, 4, 8, 8, 8, 8, -1, 10, 8, 14, 14, 14, 8),
        relations=(
            "det", "nmod:poss", "case", "amod", "nsubj:pass", "aux", "advmod", "aux:pass", "root", "case", "obl",
            "punct", "cc", "nsubj", "conj",
        ),
        pos=(
            "DET", "NOUN", "PART", "ADJ", "NOUN", "AUX", "PART", "AUX", "VERB", "ADP", "NOUN", "PUNCT", "CCONJ",
            "PRON", "VERB",
        ),
    )  # fmt: skip
    chunks = chunks_of(own)
    assert chunks is not None
    assert [(span.label, " ".join(words[span.start : span.end])) for span in chunks] == [
        ("NP", "The company 's old boats"),
        ("VP", "have not been sold"),
        ("PP", "in"),
        ("NP", "town"),
        ("NP", "they"),
        ("VP", "float"),
    ]
    assert [" ".join(words[span.start : span.end]) for span in outside(own, chunks)] == [", but"]


def test_chunks_never_overlap_and_cover_with_the_rest_every_word() -> None:
    for own in corpus_named("english").sentences:
        chunks = chunks_of(own)
        assert chunks is not None
        words = [word for span in (*chunks, *outside(own, chunks)) for word in range(span.start, span.end)]
        assert sorted(words) == list(range(len(own)))


def test_annotation_wins_and_nothing_is_made_of_nothing() -> None:
    own = replace(from_text("a b"), chunks=(Span(0, 2, "X"),))
    assert chunks_of(own) == (Span(0, 2, "X"),)
    assert chunks_of(from_text("a b")) is None
