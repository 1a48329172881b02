"""Nothing that decides is learnt from: documents and texts stay together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_tasks import planted

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.finetuning.division import digest, divided


def _with_documents(corpus: Corpus, documents: int) -> Corpus:
    items = [
        replace(item, parts=(replace(item.parts[0], document=f"d{place % documents}"),))
        for place, item in enumerate(corpus)
    ]
    return replace(corpus, items=tuple(items))


def test_no_document_is_on_both_sides() -> None:
    found = divided(_with_documents(planted("sentence", 200), 20), 0.1, seed=0)
    learnt, held_out = ({item.parts[0].document for item in side} for side in (found.learnt, found.held_out))
    assert found.kept_together == "document"
    assert not learnt & held_out
    assert len(found.held_out) == 20 and len(found.learnt) == 180


def test_no_text_is_on_both_sides_where_there_are_few_documents() -> None:
    corpus = _with_documents(planted("sentence", 60), 3)
    doubled = replace(corpus, items=corpus.items + tuple(replace(item, id=f"{item.id}b") for item in corpus.items))
    found = divided(doubled, 0.2, seed=0)
    assert found.kept_together == "text"
    assert not {item.parts[0].text for item in found.learnt} & {item.parts[0].text for item in found.held_out}
    assert len(found.held_out) == pytest.approx(24, abs=2)


def test_the_order_of_the_items_changes_nothing_and_the_seed_does() -> None:
    corpus = planted("pair", 80)
    turned = replace(corpus, items=corpus.items[::-1])
    assert divided(corpus, 0.1, seed=0) == divided(turned, 0.1, seed=0)
    assert divided(corpus, 0.1, seed=0).held_out != divided(corpus, 0.1, seed=1).held_out
    assert digest(corpus.items) == digest(turned.items) != digest(corpus.items[1:])


def test_what_cannot_be_divided_is_refused() -> None:
    corpus = planted("sentence", 8)
    with pytest.raises(Refusal, match="has 3 items"):
        divided(corpus[:3], 0.1, seed=0)
    with pytest.raises(Refusal, match="the same text"):
        divided(replace(corpus, items=(corpus[0],) * 8), 0.1, seed=0)
    with pytest.raises(Refusal, match="dev-share"):
        divided(corpus, 1.5, seed=0)
