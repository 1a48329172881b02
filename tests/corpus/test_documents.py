"""Documents as single examples: annotations are merged and their indices shifted."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.corpus.sentences import FIRST, SECOND
from tests.shared_data import shared

from bertology.corpus.documents import merge_sentences
from bertology.corpus.read import load_corpus, read
from bertology.corpus.sentence import ROOT, SemanticFrame, Sentence, Span, sentence_from_text
from bertology.errors import Refusal


def test_labels_of_words_and_spans_are_merged() -> None:
    first = replace(FIRST, word_labels=MappingProxyType({"mood": ("a", "b", "c")}))
    second = replace(SECOND, span_labels=MappingProxyType({"part": (Span(0, 1, "x"),)}))
    merged = merge_sentences([first, second])
    assert dict(merged.word_labels) == {"mood": ("a", "b", "c", "", "")}
    assert dict(merged.span_labels) == {"part": (Span(3, 4, "x"),)}


def test_a_document_has_the_annotations_of_its_sentences() -> None:
    by_sentence, by_document = load_corpus("english"), load_corpus("english", unit="document")
    assert len(by_document) == len({sentence.document for sentence in by_sentence.sentences}) == 28
    by_name: dict[str, list[Sentence]] = {}
    for sentence in by_sentence.sentences:
        by_name.setdefault(sentence.document, []).append(sentence)
    for document in by_document.sentences:
        sentences = by_name[document.document]
        assert document.words == tuple(word for s in sentences for word in s.words)
        surfaces = [s.text[start:end] for s in sentences for start, end in s.offsets]
        assert [document.text[start:end] for start, end in document.offsets] == surfaces
        for name in ("mentions", "entities"):
            spans = [document.words[span.start : span.end] for span in getattr(document, name) or ()]
            assert spans == [s.words[span.start : span.end] for s in sentences for span in getattr(s, name) or ()]
        assert edges(document) == [edge for s in sentences for edge in edges(s)]


def test_frames_and_senses_are_shifted_in_merged_sentences() -> None:
    first = replace(sentence_from_text("Dogs bark ."), senses=(None, "bark.01", None))
    second = replace(sentence_from_text("They bite men"), frames=(SemanticFrame(1, "bite.01", (Span(2, 3, "ARG1"),)),))
    merged = merge_sentences([first, second])
    assert merged.frames == (SemanticFrame(4, "bite.01", (Span(5, 6, "ARG1"),)),)
    assert merged.senses == (None, "bark.01", None, None, None, None)
    assert merged.pos is None


def test_marked_words_are_shifted_in_merged_sentences() -> None:
    marked = replace(FIRST, marked_words=MappingProxyType({"target": (1,)}))
    assert dict(merge_sentences([marked, marked]).marked_words) == {"target": (1, 4)}


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(Refusal, match="document"):
        load_corpus("english", unit="documents")


def test_litbank_is_read_by_documents() -> None:
    corpus = read(shared("data/coref/litbank"), unit="document", limit=2)
    assert [len(example.segments[0]) > 1500 for example in corpus] == [True, True]


def edges(sentence: Sentence) -> list[tuple[str, str | int]]:
    return [
        (word, governor if governor == ROOT else sentence.words[governor])
        for word, governor in zip(sentence.words, sentence.governors or (), strict=True)
    ]
