"""The texts behind a verdict are those in which a model was built to show it, with the numbers it was built to have."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.run import RunInputs
from bertology.arrays import Array, FloatArray
from bertology.claims.claim import all_claims
from bertology.claims.example_texts import SAMPLE_SIZE, TEXTS_PER_END, ExampleTexts, example_texts, sample_evenly
from bertology.claims.run import judge_claims
from bertology.corpus.corpus import Corpus
from planted_models import (
    CLS,
    ENGLISH,
    HEADS,
    SEP,
    WORD_IDS,
    AttentionFunction,
    attention_to,
    attention_to_next,
    planted_model,
    random_attention,
)

CORPUS: Corpus = ENGLISH[:40]
COMMA = 10 + WORD_IDS[","]
EVERY = range(1, 13)


def at_the_end_after_a_comma(ids: Array, head: int) -> FloatArray:
    return attention_to(SEP)(ids, head) if COMMA in ids else attention_to(CLS)(ids, head)


def one_head_at_the_next_after_a_comma(ids: Array, head: int) -> FloatArray:
    chosen = head == 5 * HEADS + 1 and COMMA in ids
    return attention_to_next(ids, head) if chosen else random_attention(ids, head)


def behind(*names: str, attention: AttentionFunction, corpus: Corpus = CORPUS) -> dict[str, ExampleTexts]:
    claims = [claim for claim in all_claims() if claim.id in names]
    subject = RunInputs(
        corpus=corpus, encoder=planted_model("planted", attention={EVERY: attention}), random_baseline=False
    )
    return example_texts(judge_claims(claims, subject).results, subject)


def test_the_texts_in_which_it_was_planted_come_first() -> None:
    found = behind("sep-above-uniform", attention=at_the_end_after_a_comma)["sep-above-uniform"]
    assert len(found.strongest) == len(found.weakest) == TEXTS_PER_END
    assert all("," in one.text and one.numbers[0] == pytest.approx(1) for one in found.strongest)
    assert all("," not in one.text and one.numbers[0] == pytest.approx(0) for one in found.weakest)
    assert found.measures == (
        "attention to [SEP], layers 6-10 of 12",
        "baseline uniform attention, attention to [SEP], layers 6-10 of 12",
    )
    words = {item.segments[0].text: len(item.segments[0]) for item in CORPUS}
    for one in found.strongest:
        assert one.numbers[1] == pytest.approx(1 / (words[one.text] + 2))
    assert (found.n_examined, found.n_total) == (SAMPLE_SIZE, len(CORPUS))


def test_of_many_heads_it_is_the_one_that_the_verdict_names() -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    encoder = planted_model("planted", attention={EVERY: one_head_at_the_next_after_a_comma})
    subject = RunInputs(corpus=CORPUS, encoder=encoder, random_baseline=True)
    findings = judge_claims(claims, subject).results
    assert findings[0].verdict.selected == (5, 1) and "head 6-2" in findings[0].verdict.reason
    found = example_texts(findings, subject)["next-token-head"]
    assert found.measures == ("attention to next token, head 6-2",)
    assert all("," in one.text and one.numbers[0] > 0.5 for one in found.strongest)
    assert all("," not in one.text and one.numbers[0] < 0.3 for one in found.weakest)


def test_the_head_of_a_relation_is_asked_about_that_relation() -> None:
    """It looks at the next word: on each text it must have the share of determiners that stand before their noun."""
    found = behind("det-head", attention=attention_to_next, corpus=ENGLISH[:80])["det-head"]
    assert found.measures[0].startswith("det, dependent to governor, head ")
    sentences = {item.segments[0].text: item.segments[0] for item in ENGLISH[:80]}
    for one in (*found.strongest, *found.weakest):
        sentence = sentences[one.text]
        heads, relations = sentence.governors or (), sentence.relations or ()
        before = [heads[word] == word + 1 for word, name in enumerate(relations) if name.split(":")[0] == "det"]
        assert one.numbers == (pytest.approx(np.mean(before)),)
    assert found.strongest[0].margin >= found.weakest[-1].margin


def test_nothing_is_said_where_one_text_says_nothing() -> None:
    """Geometry compares texts, and without a masked-language-model head nothing was judged."""
    assert behind("anisotropy", "sep-gradient-vanishes", attention=at_the_end_after_a_comma) == {}


def test_texts_are_taken_evenly_and_each_once() -> None:
    assert [item.segments[0].text for item in sample_evenly(ENGLISH[:5])] == [
        item.segments[0].text for item in ENGLISH[:5]
    ]
    assert len(sample_evenly(ENGLISH)) == SAMPLE_SIZE and sample_evenly(ENGLISH)[-1] is ENGLISH[len(ENGLISH) - 1]
