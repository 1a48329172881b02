"""spaCy documents: words, offsets, trees, entities and span groups, without white space."""

from __future__ import annotations

from typing import Any

import pytest
from tests.corpus.checks import assert_offsets_match, assert_valid

import bertology
from bertology.corpus.sentence import Span
from bertology.errors import Refusal

spacy = pytest.importorskip("spacy")
tokens = pytest.importorskip("spacy.tokens")
NLP = spacy.blank("en")


def annotated_doc() -> Any:
    words = ["Ann", "\n", "sings", "well", ".", "Bob", "left", "."]
    return tokens.Doc(
        NLP.vocab,
        words=words,
        spaces=[True, False, True, False, True, True, False, False],
        pos=["PROPN", "SPACE", "VERB", "ADV", "PUNCT", "PROPN", "VERB", "PUNCT"],
        tags=["NNP", "_SP", "VBZ", "RB", ".", "NNP", "VBD", "."],
        lemmas=["Ann", "\n", "sing", "well", ".", "Bob", "leave", "."],
        heads=[2, 0, 2, 2, 2, 6, 6, 6],
        deps=["nsubj", "dep", "ROOT", "advmod", "punct", "nsubj", "ROOT", "punct"],
        ents=["B-PERSON", "O", "O", "O", "O", "B-PERSON", "O", "O"],
        sent_starts=[True, False, False, False, False, True, False, False],
    )


def test_sentences_have_the_annotations_of_spacy() -> None:
    doc = annotated_doc()
    doc.spans["praise"] = [tokens.Span(doc, 2, 4, label="good")]
    corpus = bertology.corpus([doc])
    assert_valid(corpus)
    assert_offsets_match(corpus)
    first, second = (example.segments[0] for example in corpus)
    assert (first.words, first.text) == (("Ann", "sings", "well", "."), "Ann \nsings well.")
    assert first.governors == (1, -1, 1, 1) and second.governors == (1, -1, 1)
    assert first.relations == ("nsubj", "ROOT", "advmod", "punct")
    assert (first.pos, first.xpos) == (("PROPN", "VERB", "ADV", "PUNCT"), ("NNP", "VBZ", "RB", "."))
    assert first.lemmas == ("Ann", "sing", "well", ".")
    assert first.entities == (Span(0, 1, "PERSON"),) and second.entities == (Span(0, 1, "PERSON"),)
    assert dict(first.span_labels) == {"praise": (Span(1, 3, "good"),)}
    assert dict(second.span_labels) == {"praise": ()}
    assert (first.document, first.id, second.id) == ("1", "1", "2")


def test_a_doc_without_annotations_is_one_sentence() -> None:
    corpus = bertology.corpus(NLP("Ann sings. Bob left."))
    assert len(corpus) == 1 and corpus[0].segments[0].words == ("Ann", "sings", ".", "Bob", "left", ".")
    assert corpus[0].segments[0].annotations() == frozenset()


def test_sentence_boundaries_of_spacy_are_kept() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    corpus = bertology.corpus([nlp("Ann sings. Bob left."), nlp("It rains.")])
    assert [segment.text for segment in corpus.sentences] == ["Ann sings.", "Bob left.", "It rains."]
    assert [segment.document for segment in corpus.sentences] == ["1", "1", "2"]


def test_a_sentence_without_a_whole_tree_is_refused_or_counted() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp("Ann sings. Go")
    doc[0].dep_ = "nsubj"
    with pytest.raises(Refusal, match="3 words have the governor 0"):
        bertology.corpus(doc)
    corpus = bertology.corpus(doc, skip_malformed=True)
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, ["several roots"])
