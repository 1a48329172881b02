"""Findings about readers of multiple choice: judged of readers whose answers are known, and not of what cannot read."""

from __future__ import annotations

from functools import cache

import pytest

from bertology.analyses.run import RunInputs
from bertology.claims.claim import all_claims
from bertology.claims.run import ClaimResult, judge_claims
from bertology.corpus.corpus import corpus_from_texts
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from planted_readers import OptionScore, arbitrary_option, gold_option, longest_option, reader

MISLEAD, HURT_LITTLE = "unreadable-options-mislead", "unreadable-answers-hurt-little"
QUESTIONS = "generated:reading_comprehension@7:60"
CLAIMS = [
    claim.model_copy(update={"corpus": QUESTIONS, "options": {**claim.options, "sample_size": 60}})
    for claim in all_claims()
    if claim.id in (MISLEAD, HURT_LITTLE)
]
"""Asked of fewer questions than they are otherwise."""


def judged(against: Encoder | None) -> dict[str, ClaimResult]:
    subject = RunInputs(corpus=corpus_from_texts("Nothing is asked of this."), encoder=load("tiny"), against=against)
    return {finding.claim.id: finding for finding in judge_claims(CLAIMS, subject).results}


@cache
def judged_of(likes: OptionScore) -> dict[str, ClaimResult]:
    return judged(reader(load_corpus(QUESTIONS), likes))


@pytest.mark.parametrize(
    ("likes", "mislead", "hurt_little"),
    [(gold_option, "fails", "holds"), (longest_option, "holds", "fails")],
    ids=["reads", "takes the longest"],
)
def test_the_findings_hold_and_fail_for_readers_built_so(likes: OptionScore, mislead: str, hurt_little: str) -> None:
    found = judged_of(likes)
    assert found[MISLEAD].verdict.outcome == mislead, found[MISLEAD].verdict.reason
    assert found[HURT_LITTLE].verdict.outcome == hurt_little, found[HURT_LITTLE].verdict.reason


def test_a_model_that_only_guesses_is_no_reader() -> None:
    for finding in judged_of(arbitrary_option).values():
        assert finding.verdict.outcome == "not applicable"
        assert "precondition of this claim is not met" in finding.verdict.reason
        assert "clean input" in finding.verdict.reason


@pytest.mark.parametrize("against", [None, "tiny"])
def test_without_a_reader_it_is_said_why_and_how_to_make_one(against: str | None) -> None:
    for finding in judged(None if against is None else load(against)).values():
        assert finding.verdict.outcome == "not applicable"
        assert ("none was given" if against is None else "has no task head for --task choice") in finding.verdict.reason
        assert "--task choice" in finding.verdict.reason and "--against" in finding.verdict.reason
