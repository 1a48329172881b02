"""Claims about multiple-choice models: tested on models with known predictions, not applicable to other models."""

from __future__ import annotations

from functools import cache

import pytest

from bertology.analyses.run import RunInputs
from bertology.claims.catalogue import all_claims
from bertology.claims.claim_results import ClaimResult
from bertology.claims.run import judge_claims
from bertology.corpus.read import as_corpus, load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from planted_multiple_choice import OptionScore, arbitrary_option, gold_option, longest_option, multiple_choice_model

MISLEAD, HURT_LITTLE = "unreadable-options-mislead", "unreadable-answers-hurt-little"
QUESTIONS = "generated:reading_comprehension@7:100"
CLAIMS = [
    claim.model_copy(update={"corpus": QUESTIONS, "options": {**claim.options, "sample_size": 100}})
    for claim in all_claims()
    if claim.id in (MISLEAD, HURT_LITTLE)
]
"""The claims with fewer questions than in the catalogue; 60 unchanged ones could not exclude a drop of 5 points."""


def claim_results(against: Encoder | None) -> dict[str, ClaimResult]:
    inputs = RunInputs(corpus=as_corpus(["An unused text."]), encoder=load("tiny"), against=against)
    return {result.claim.id: result for result in judge_claims(CLAIMS, inputs).results}


@cache
def results_of_model(option_score: OptionScore) -> dict[str, ClaimResult]:
    return claim_results(multiple_choice_model(load_corpus(QUESTIONS), option_score))


def test_the_claims_exist() -> None:
    assert {claim.id for claim in CLAIMS} == {MISLEAD, HURT_LITTLE}


@pytest.mark.parametrize(
    ("option_score", "mislead", "hurt_little"),
    [(gold_option, "fails", "holds"), (longest_option, "holds", "fails")],
    ids=["gold option", "longest option"],
)
def test_claims_hold_and_fail_for_planted_models(option_score: OptionScore, mislead: str, hurt_little: str) -> None:
    results = results_of_model(option_score)
    assert results[MISLEAD].verdict.outcome == mislead, results[MISLEAD]
    assert results[HURT_LITTLE].verdict.outcome == hurt_little, results[HURT_LITTLE]


def test_claims_are_not_applicable_to_a_model_that_guesses() -> None:
    for result in results_of_model(arbitrary_option).values():
        assert result.verdict.outcome == "not applicable"
        assert result.verdict.obstacle.startswith("Nothing learnt that could be lost")
        assert "clean input" in result.verdict.obstacle


@pytest.mark.parametrize("against", [None, "tiny"])
def test_without_a_multiple_choice_model_the_reason_and_the_remedy_are_given(against: str | None) -> None:
    for result in claim_results(None if against is None else load(against)).values():
        assert result.verdict.outcome == "not applicable"
        assert (
            "none was given" if against is None else "has no task head for --task choice"
        ) in result.verdict.obstacle
        assert "--task choice" in result.verdict.obstacle and "--against" in result.verdict.obstacle
