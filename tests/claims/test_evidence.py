"""The texts behind a verdict are those in which a model was built to show it, with the numbers it was built to have."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.run import Subject
from bertology.claims.evidence import LOOKED, SHOWN, Evidence, evidence_for, spread
from bertology.claims.examine import examine
from bertology.claims.shelf import all_claims
from bertology.corpus.corpus import Corpus
from planted_models import (
    CLS,
    ENGLISH,
    HEADS,
    SEP,
    WORDS,
    Floats,
    Ints,
    Look,
    at_random,
    at_the_next,
    looking_at,
    model,
)

CORPUS: Corpus = ENGLISH[:40]
COMMA = 10 + WORDS[","]
EVERY = range(1, 13)


def at_the_end_after_a_comma(ids: Ints, head: int) -> Floats:
    return looking_at(SEP)(ids, head) if COMMA in ids else looking_at(CLS)(ids, head)


def one_head_at_the_next_after_a_comma(ids: Ints, head: int) -> Floats:
    chosen = head == 5 * HEADS + 1 and COMMA in ids
    return at_the_next(ids, head) if chosen else at_random(ids, head)


def behind(*names: str, looks: Look, corpus: Corpus = CORPUS) -> dict[str, Evidence]:
    claims = [claim for claim in all_claims() if claim.id in names]
    subject = Subject(corpus=corpus, encoder=model("planted", looks={EVERY: looks}), randomise=False)
    return evidence_for(examine(claims, subject), subject)


def test_the_texts_in_which_it_was_planted_come_first() -> None:
    found = behind("sep-above-uniform", looks=at_the_end_after_a_comma)["sep-above-uniform"]
    assert len(found.most) == len(found.least) == SHOWN
    assert all("," in one.text and one.numbers[0] == pytest.approx(1) for one in found.most)
    assert all("," not in one.text and one.numbers[0] == pytest.approx(0) for one in found.least)
    assert found.named == ("to [SEP], layers 6-10 of 12", "uniform attention, to [SEP], layers 6-10 of 12")
    words = {item.parts[0].text: len(item.parts[0]) for item in CORPUS}
    for one in found.most:
        assert one.numbers[1] == pytest.approx(1 / (words[one.text] + 2))
    assert (found.looked, found.there) == (LOOKED, len(CORPUS))


def test_of_many_heads_it_is_the_one_that_the_verdict_names() -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    encoder = model("planted", looks={EVERY: one_head_at_the_next_after_a_comma})
    subject = Subject(corpus=CORPUS, encoder=encoder, randomise=True)
    findings = examine(claims, subject)
    assert findings[0].verdict.chosen == (5, 1) and "head 6-2" in findings[0].verdict.why
    found = evidence_for(findings, subject)["next-token-head"]
    assert found.named == ("to next, head 6-2",)
    assert all("," in one.text and one.numbers[0] > 0.5 for one in found.most)
    assert all("," not in one.text and one.numbers[0] < 0.3 for one in found.least)


def test_the_head_of_a_relation_is_asked_about_that_relation() -> None:
    """It looks at the next word: on each text it must have the share of determiners that stand before their noun."""
    found = behind("det-head", looks=at_the_next, corpus=ENGLISH[:80])["det-head"]
    assert found.named[0].startswith("det, dependent to head, head ")
    sentences = {item.parts[0].text: item.parts[0] for item in ENGLISH[:80]}
    for one in (*found.most, *found.least):
        sentence = sentences[one.text]
        heads, relations = sentence.heads or (), sentence.relations or ()
        before = [heads[word] == word + 1 for word, name in enumerate(relations) if name.split(":")[0] == "det"]
        assert one.numbers == (pytest.approx(np.mean(before)),)
    assert found.most[0].lead >= found.least[-1].lead


def test_nothing_is_said_where_one_text_says_nothing() -> None:
    """Geometry compares texts, and without a masked-language-model head nothing was judged."""
    assert behind("anisotropy", "sep-gradient-vanishes", looks=at_the_end_after_a_comma) == {}


def test_texts_are_taken_evenly_and_each_once() -> None:
    assert [item.parts[0].text for item in spread(ENGLISH[:5])] == [item.parts[0].text for item in ENGLISH[:5]]
    assert len(spread(ENGLISH)) == LOOKED and spread(ENGLISH)[-1] is ENGLISH[len(ENGLISH) - 1]
