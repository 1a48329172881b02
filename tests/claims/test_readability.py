"""Claims about another language than that of the corpus do not apply."""

from __future__ import annotations

import bertology
from bertology.claims.readability import other_language_refusals
from bertology.claims.run import select_claims
from bertology.corpus.read import load_corpus


def test_a_finding_about_english_does_not_apply_to_chinese() -> None:
    results = bertology.claims("tiny", "chinese", papers="clark2019", limit=3, max_unknown=1.0)
    verdict = results["possessive-head"].verdict
    assert verdict.outcome == "not applicable"
    assert "about English, and the corpus is in Chinese" in verdict.obstacle and "nmod:poss" in verdict.obstacle
    assert "about English" not in results["obj-head"].verdict.obstacle


def test_english_stimuli_do_not_judge_a_model_of_chinese() -> None:
    results = bertology.claims("tiny", "chinese", papers=["lin2019", "wiedemann2019"], limit=3, max_unknown=1.0)
    assert len(results) > 5 and {result.verdict.outcome for result in results} == {"not applicable"}
    for id in ("position-fades", "matching-distractors-confuse", "neighbours-know-senses"):
        assert "is tested on English stimuli" in results[id].verdict.obstacle
        assert "the corpus is in Chinese" in results[id].verdict.obstacle
    english = load_corpus("english", limit=20)
    assert other_language_refusals(select_claims((), full=True), english) == {}
