"""Example texts of a claim are those in which a planted model shows it, with the planted numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.run import RunInputs
from bertology.arrays import Array, FloatArray
from bertology.claims.catalogue import all_claims
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
ALL_LAYERS = range(1, 13)


def sep_if_comma(ids: Array, head: int) -> FloatArray:
    """All heads attend to [SEP] in texts with a comma, and to [CLS] in the others."""
    return attention_to(SEP)(ids, head) if COMMA in ids else attention_to(CLS)(ids, head)


def head_6_2_next_if_comma(ids: Array, head: int) -> FloatArray:
    """Head 6-2 attends to the next token in texts with a comma; all other attention is random."""
    is_planted = head == 5 * HEADS + 1 and COMMA in ids
    return attention_to_next(ids, head) if is_planted else random_attention(ids, head)


def planted_examples(*ids: str, attention: AttentionFunction, corpus: Corpus = CORPUS) -> dict[str, ExampleTexts]:
    """The example texts of claims for a model with this attention in all layers."""
    claims = [claim for claim in all_claims() if claim.id in ids]
    assert len(claims) == len(ids)
    inputs = RunInputs(
        corpus=corpus, encoder=planted_model("planted", attention={ALL_LAYERS: attention}), random_baseline=False
    )
    return example_texts(judge_claims(claims, inputs).results, inputs)


def test_texts_with_the_planted_pattern_are_the_strongest() -> None:
    examples = planted_examples("sep-above-uniform", attention=sep_if_comma)["sep-above-uniform"]
    assert len(examples.strongest) == len(examples.weakest) == TEXTS_PER_END
    assert all("," in measured.text and measured.numbers[0] == pytest.approx(1) for measured in examples.strongest)
    assert all("," not in measured.text and measured.numbers[0] == pytest.approx(0) for measured in examples.weakest)
    assert examples.measures == (
        "attention to [SEP], layers 6-10 of 12",
        "baseline uniform attention, attention to [SEP], layers 6-10 of 12",
    )
    n_words = {example.segments[0].text: len(example.segments[0]) for example in CORPUS}
    for measured in examples.strongest:
        assert measured.numbers[1] == pytest.approx(1 / (n_words[measured.text] + 2))
    assert (examples.n_examined, examples.n_total) == (SAMPLE_SIZE, len(CORPUS))


def test_the_head_is_the_one_that_the_verdict_names() -> None:
    claims = [claim for claim in all_claims() if claim.id == "next-token-head"]
    encoder = planted_model("planted", attention={ALL_LAYERS: head_6_2_next_if_comma})
    inputs = RunInputs(corpus=CORPUS, encoder=encoder, random_baseline=True)
    claim_results = judge_claims(claims, inputs).results
    assert str(claim_results[0].verdict.comparisons[0].value.head) == "6-2"
    examples = example_texts(claim_results, inputs)["next-token-head"]
    assert examples.measures == ("attention to next token, head 6-2",)
    assert all("," in measured.text and measured.numbers[0] > 0.5 for measured in examples.strongest)
    assert all("," not in measured.text and measured.numbers[0] < 0.3 for measured in examples.weakest)


def test_the_head_of_a_relation_is_measured_on_that_relation() -> None:
    """It attends to the next word, so that its score is the proportion of determiners right before their noun."""
    examples = planted_examples("det-head", attention=attention_to_next, corpus=ENGLISH[:80])["det-head"]
    assert examples.measures[0].startswith("det, dependent to governor, head ")
    sentences = {example.segments[0].text: example.segments[0] for example in ENGLISH[:80]}
    for measured in (*examples.strongest, *examples.weakest):
        sentence = sentences[measured.text]
        governors, relations = sentence.governors or (), sentence.relations or ()
        is_before_governor = [
            governors[word] == word + 1 for word, relation in enumerate(relations) if relation.split(":")[0] == "det"
        ]
        assert measured.numbers == (pytest.approx(np.mean(is_before_governor)),)
    assert examples.strongest[0].margin >= examples.weakest[-1].margin


def test_claims_that_cannot_be_measured_on_one_text_have_no_examples() -> None:
    """Geometry compares texts, and gradients need a masked-language-model head."""
    assert planted_examples("anisotropy", "sep-gradient-vanishes", attention=sep_if_comma) == {}


def test_texts_are_sampled_evenly_and_without_repetition() -> None:
    assert [ENGLISH[index].segments[0].text for index in sample_evenly(5)] == [
        example.segments[0].text for example in ENGLISH[:5]
    ]
    assert len(sample_evenly(100)) == SAMPLE_SIZE and sample_evenly(100)[-1] == 99
