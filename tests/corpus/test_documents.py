"""Documents are their sentences, every annotation at its place."""

from __future__ import annotations

import pytest

from bertology.corpus.builtin import corpus_named
from bertology.corpus.documents import put_together
from bertology.corpus.read import read
from bertology.corpus.sentence import ROOT, Frame, Sentence, Span, from_text
from bertology.errors import Refusal
from shared_data import shared


def test_a_document_says_what_its_sentences_say() -> None:
    sentences, documents = corpus_named("english"), corpus_named("english", unit="document")
    assert len(documents) == len({s.document for s in sentences.sentences}) == 28
    by_name: dict[str, list[Sentence]] = {}
    for one in sentences.sentences:
        by_name.setdefault(one.document, []).append(one)
    for whole in documents.sentences:
        parts = by_name[whole.document]
        assert whole.words == tuple(word for part in parts for word in part.words)
        assert [whole.text[a:b] for a, b in whole.offsets] == [p.text[a:b] for p in parts for a, b in p.offsets]
        assert len(whole.mentions or ()) == sum(len(part.mentions or ()) for part in parts)
        for mine, theirs in (("mentions", "mentions"), ("entities", "entities")):
            own = [whole.words[span.start : span.end] for span in getattr(whole, mine) or ()]
            assert own == [p.words[s.start : s.end] for p in parts for s in getattr(p, theirs) or ()]
        pairs = [(w, h if h == ROOT else whole.words[h]) for w, h in zip(whole.words, whole.heads or (), strict=True)]
        assert pairs == [
            (w, h if h == ROOT else p.words[h]) for p in parts for w, h in zip(p.words, p.heads or (), strict=True)
        ]


def test_frames_and_senses_move_along() -> None:
    from dataclasses import replace

    first = replace(from_text("Dogs bark ."), senses=(None, "bark.01", None))
    second = replace(from_text("They bite men"), frames=(Frame(1, "bite.01", (Span(2, 3, "ARG1"),)),))
    whole = put_together([first, second])
    assert whole.frames == (Frame(4, "bite.01", (Span(5, 6, "ARG1"),)),)
    assert whole.senses == (None, "bark.01", None, None, None, None)
    assert whole.pos is None


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(Refusal, match="document"):
        corpus_named("english", unit="documents")


def test_litbank_by_documents() -> None:
    corpus = read(shared("data/coref/litbank"), unit="document", limit=2)
    assert [len(item.parts[0]) > 1500 for item in corpus] == [True, True]
