"""Corpora: order, slices, annotations, fingerprints, and missing annotations."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.corpus.sentences import FIRST, SECOND

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example, SkippedExample
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import Span
from bertology.errors import Refusal


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


def test_the_summary_counts_skipped_input(corpus: Corpus) -> None:
    summary = replace(corpus, skipped=(SkippedExample("a", "1"), SkippedExample("a", "2"))).summary()
    assert (summary["examples"], summary["words"], summary["skipped"]) == (2, 5, {"a": 2})


def test_words_of_a_corpus_with_single_spaces_are_separated(corpus: Corpus) -> None:
    assert [sentence.text for sentence in corpus.with_single_spaces().sentences] == ["Dogs bark .", "Cats ?"]
