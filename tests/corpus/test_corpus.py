"""Corpora: order, slices, annotations, fingerprints, documents, and missing annotations."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.shared_data import shared

from bertology.corpus.corpus import (
    Corpus,
    Example,
    SkippedExample,
    concatenate_segments,
    corpus_from_sentences,
    merge_sentences,
)
from bertology.corpus.read import load_corpus, read
from bertology.corpus.sentence import ROOT, SemanticFrame, Sentence, Span, sentence_from_text
from bertology.errors import Refusal

FIRST, SECOND = sentence_from_text("Dogs bark."), replace(sentence_from_text("Cats?"), entities=(), label="q")


@pytest.fixture
def corpus() -> Corpus:
    return corpus_from_sentences([FIRST, SECOND], name="pets")


def test_a_corpus_is_a_sequence_of_examples(corpus: Corpus) -> None:
    assert len(corpus) == 2
    assert [example.segments[0] for example in corpus] == [FIRST, SECOND]
    assert corpus[1].label == "q"
    assert isinstance(corpus[:1], Corpus) and corpus[:1].name == "pets" and len(corpus[:1]) == 1


def test_annotations_are_counted_and_an_empty_annotation_is_present(corpus: Corpus) -> None:
    assert dict(corpus.annotations) == {"entities": 1, "label": 1}


def test_a_missing_annotation_is_refused_and_the_present_ones_are_named(corpus: Corpus) -> None:
    corpus.require_annotations("entities", analysis_name="This probe")
    with pytest.raises(Refusal, match="This probe needs the annotation governors; pets has entities, label"):
        corpus.require_annotations("governors", analysis_name="This probe")


def test_the_fingerprint_depends_on_content_and_order_only(corpus: Corpus) -> None:
    renamed = replace(corpus, name="animals", skipped=(SkippedExample("x", "y"),))
    assert renamed.fingerprint == corpus.fingerprint
    assert corpus_from_sentences([SECOND, FIRST]).fingerprint != corpus.fingerprint
    annotated = corpus_from_sentences([replace(FIRST, entities=(Span(0, 1, "X"),)), SECOND])
    assert annotated.fingerprint != corpus.fingerprint


def test_the_fingerprint_depends_on_factors() -> None:
    first, second = (Example((FIRST,), factors=MappingProxyType({"number": n})) for n in ("singular", "plural"))
    assert Corpus((first,)).fingerprint != Corpus((second,)).fingerprint


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        ("english", "6c10012d7227644b8fc91376ec4da685"),
        ("chinese", "3d9f2031bebac6a23cc0a792e7aec334"),
        ("diagnostic", "f9ec0d75749e754180a19eb5a9ef7edd"),
        ("tasks:bigram_shift:english", "2018ebb3c9ca897eec29cb2cf270f51d"),
    ],
)
def test_fingerprints_of_built_in_corpora_do_not_change(name: str, fingerprint: str) -> None:
    """Recordings in a store are found by the fingerprint of their corpus."""
    assert load_corpus(name).fingerprint == fingerprint


def test_the_fingerprint_depends_on_labels_by_name() -> None:
    plain = Example((FIRST,))
    labelled = [
        replace(plain, labels=MappingProxyType({"topic": "a"})),
        replace(plain, labels=MappingProxyType({"topic": "b"})),
        Example((replace(FIRST, word_labels=MappingProxyType({"topic": ("a", "b", "c")})),)),
        Example((replace(FIRST, span_labels=MappingProxyType({"topic": (Span(0, 1, "a"),)})),)),
    ]
    assert len({Corpus((example,)).fingerprint for example in (plain, *labelled)}) == 5


def labelled_corpus(*labels: dict[str, str], gold: str | None = None) -> Corpus:
    return Corpus(tuple(Example((FIRST,), label=gold, labels=MappingProxyType(names)) for names in labels), name="pets")


def test_a_label_is_chosen_by_name() -> None:
    corpus = labelled_corpus({"topic": "a", "mood": "x"}, {"topic": "b"})
    assert [example.label for example in corpus.with_label("topic")] == ["a", "b"]
    assert [example.segments[0].label for example in corpus.with_label("mood")] == ["x", None]
    assert corpus.label_names.examples == {"topic": 2, "mood": 1} and corpus.annotations["label"] == 2
    assert [example.label for example in labelled_corpus({"topic": "a"}).with_label()] == ["a"], "the only label"
    gold = labelled_corpus({"topic": "a", "mood": "x"}, gold="g")
    assert gold.with_label() is gold and gold.with_label("label") is gold


def test_a_label_that_is_missing_or_ambiguous_is_refused_with_the_names() -> None:
    corpus = labelled_corpus({"topic": "a", "mood": "x"})
    for name, message in (("topik", "Did you mean 'topic'"), ("", "mood, topic"), ("label", "mood, topic")):
        with pytest.raises(Refusal, match=message) as caught:
            corpus.with_label(name)
        assert "--label" in str(caught.value)
    with pytest.raises(Refusal, match="no label"):
        labelled_corpus({}).with_label("topic")


def test_labels_of_words_and_spans_are_merged() -> None:
    first = replace(FIRST, word_labels=MappingProxyType({"mood": ("a", "b", "c")}))
    second = replace(SECOND, span_labels=MappingProxyType({"part": (Span(0, 1, "x"),)}))
    merged = merge_sentences([first, second])
    assert dict(merged.word_labels) == {"mood": ("a", "b", "c", "", "")}
    assert dict(merged.span_labels) == {"part": (Span(3, 4, "x"),)}


def test_the_summary_counts_skipped_input(corpus: Corpus) -> None:
    summary = replace(corpus, skipped=(SkippedExample("a", "1"), SkippedExample("a", "2"))).summary()
    assert (summary["examples"], summary["words"], summary["skipped"]) == (2, 5, {"a": 2})


def test_model_inputs_by_kind_of_example() -> None:
    segments = tuple(sentence_from_text(text) for text in ("A b.", "C?", "d", "e f"))
    choice = Example(segments, "choice", "0")
    assert [text_input.segments[1].text for text_input in choice.text_inputs] == ["C? d", "C? e f"]
    assert len(Example(segments[:2], "pair").text_inputs) == 1
    assert len(Example(segments[:2], "minimal_pair").text_inputs) == 2
    assert Example(segments[:2], "question").text_inputs[0].words == ("A", "b", ".", "C", "?")


def test_offsets_hold_in_concatenated_texts() -> None:
    sentence = concatenate_segments((FIRST, SECOND))
    assert sentence.text == "Dogs bark. Cats?"
    assert tuple(sentence.text[start:end] for start, end in sentence.offsets) == sentence.words


def test_words_of_a_corpus_with_single_spaces_are_separated(corpus: Corpus) -> None:
    assert [sentence.text for sentence in corpus.with_single_spaces().sentences] == ["Dogs bark .", "Cats ?"]


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


def edges(sentence: Sentence) -> list[tuple[str, str | int]]:
    return [
        (word, governor if governor == ROOT else sentence.words[governor])
        for word, governor in zip(sentence.words, sentence.governors or (), strict=True)
    ]


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
