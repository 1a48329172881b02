"""Corpora: order, slices, layers, fingerprints and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertology.corpus.corpus import Corpus, Item, Skipped, joined, of_sentences
from bertology.corpus.sentence import Span, from_text
from bertology.errors import Refusal

FIRST, SECOND = from_text("Dogs bark."), replace(from_text("Cats?"), entities=(), label="q")


@pytest.fixture
def corpus() -> Corpus:
    return of_sentences([FIRST, SECOND], name="pets")


def test_it_is_a_sequence_of_items(corpus: Corpus) -> None:
    assert len(corpus) == 2
    assert [item.parts[0] for item in corpus] == [FIRST, SECOND]
    assert corpus[1].label == "q"
    assert isinstance(corpus[:1], Corpus) and corpus[:1].name == "pets" and len(corpus[:1]) == 1


def test_layers_are_counted_and_an_empty_layer_is_there(corpus: Corpus) -> None:
    assert dict(corpus.layers) == {"entities": 1, "label": 1}


def test_a_missing_layer_is_refused_with_what_there_is(corpus: Corpus) -> None:
    corpus.require("entities", purpose="This probe")
    with pytest.raises(Refusal, match="This probe needs the annotation heads; pets carries entities, label"):
        corpus.require("heads", purpose="This probe")


def test_the_fingerprint_follows_content_and_order_only(corpus: Corpus) -> None:
    renamed = replace(corpus, name="animals", skipped=(Skipped("x", "y"),))
    assert renamed.fingerprint == corpus.fingerprint
    assert of_sentences([SECOND, FIRST]).fingerprint != corpus.fingerprint
    annotated = of_sentences([replace(FIRST, entities=(Span(0, 1, "X"),)), SECOND])
    assert annotated.fingerprint != corpus.fingerprint


def test_the_summary_counts_what_was_skipped(corpus: Corpus) -> None:
    summary = replace(corpus, skipped=(Skipped("a", "1"), Skipped("a", "2"))).summary()
    assert (summary["items"], summary["words"], summary["skipped"]) == (2, 5, {"a": 2})


def test_inputs_by_kind() -> None:
    parts = tuple(from_text(text) for text in ("A b.", "C?", "d", "e f"))
    choice = Item(parts, "choice", "0")
    assert [part.parts[1].text for part in choice.inputs] == ["C? d", "C? e f"]
    assert len(Item(parts[:2], "pair").inputs) == 1
    assert len(Item(parts[:2], "minimal_pair").inputs) == 2
    assert Item(parts[:2], "question").inputs[0].words == ("A", "b", ".", "C", "?")


def test_joined_texts_keep_their_offsets() -> None:
    both = joined((FIRST, SECOND))
    assert both.text == "Dogs bark. Cats?"
    assert tuple(both.text[a:b] for a, b in both.offsets) == both.words


def test_respaced_corpora(corpus: Corpus) -> None:
    assert [part.text for part in corpus.respaced().sentences] == ["Dogs bark .", "Cats ?"]
