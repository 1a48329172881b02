"""Findings about readers of multiple choice: judged of readers whose answers are known, and not of what cannot read."""

from __future__ import annotations

from functools import cache

import pytest

from bertology.analyses.run import Subject
from bertology.claims.examine import Finding, examine
from bertology.claims.shelf import all_claims
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import read_text
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from planted_readers import Likes, anything, only_what_is_right, reader, the_longest

MISLEAD, HURT_LITTLE = "unreadable-options-mislead", "unreadable-answers-hurt-little"
QUESTIONS = "generated:reading@7:60"
CLAIMS = [
    claim.model_copy(update={"corpus": QUESTIONS, "options": {**claim.options, "items": 60}})
    for claim in all_claims()
    if claim.id in (MISLEAD, HURT_LITTLE)
]
"""Asked of fewer questions than they are otherwise."""


def judged(against: Encoder | None) -> dict[str, Finding]:
    subject = Subject(corpus=read_text("Nothing is asked of this."), encoder=load("tiny"), against=against)
    return {finding.claim.id: finding for finding in examine(CLAIMS, subject)}


@cache
def judged_of(likes: Likes) -> dict[str, Finding]:
    return judged(reader(corpus_named(QUESTIONS), likes))


@pytest.mark.parametrize(
    ("likes", "mislead", "hurt_little"),
    [(only_what_is_right, "fails", "holds"), (the_longest, "holds", "fails")],
    ids=["reads", "takes the longest"],
)
def test_the_findings_hold_and_fail_for_readers_built_so(likes: Likes, mislead: str, hurt_little: str) -> None:
    found = judged_of(likes)
    assert found[MISLEAD].verdict.outcome == mislead, found[MISLEAD].verdict.why
    assert found[HURT_LITTLE].verdict.outcome == hurt_little, found[HURT_LITTLE].verdict.why


def test_a_model_that_only_guesses_is_no_reader() -> None:
    for finding in judged_of(anything).values():
        assert finding.verdict.outcome == "not applicable"
        assert "takes for granted" in finding.verdict.why and "unattacked" in finding.verdict.why


@pytest.mark.parametrize("against", [None, "tiny"])
def test_without_a_reader_it_is_said_why_and_how_to_make_one(against: str | None) -> None:
    for finding in judged(None if against is None else load(against)).values():
        assert finding.verdict.outcome == "not applicable"
        assert ("none was given" if against is None else "cannot be asked the task 'choice'") in finding.verdict.why
        assert "--task choice" in finding.verdict.why and "--against" in finding.verdict.why
