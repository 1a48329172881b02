"""Answers: sentences that agree with the numbers, for every claim and whatever the numbers are."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology.claims.answer import describe_caveat, write_answer
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import (
    AllOf,
    AnyHead,
    AnyRow,
    Between,
    Claim,
    EachLayer,
    Greater,
    NumberSelector,
    PeaksInOrder,
)
from bertology.claims.rounding import round_comparisons
from bertology.claims.template import parse_template
from bertology.claims.verdict import (
    Comparison,
    ControlVerdict,
    FewExamples,
    LearningProbe,
    Measurement,
    Outcome,
    Verdict,
)
from bertology.estimates.estimate import Estimate
from bertology.results.shapes import Head

CLAIMS = {claim.id: claim for claim in all_claims()}
OPENINGS = {"holds": "Yes", "fails": "No.", "inconclusive": "Undecided, because "}
WORDS_OF_THE_MACHINERY = ("the claim needs", "baseline ", "None", "nan", "{", "}", "  ", "..", " ,", " .", "--")


def estimate(value: float, half: float = 0.02, n: int = 356) -> Estimate:
    return Estimate(value, value - half, value + half, n)


def number(measured: Estimate, **fields: Any) -> Measurement:
    """A number with every place that a template may name."""
    places: dict[str, Any] = {
        "head": Head(3, 3),
        "layers": (4, 7),
        "n_layers": 8,
        "searched_layers": (4, 5, 6, 7),
        "x": 32.0,
        "n_candidates": 64,
        "n_cases": 320,
    }
    return Measurement("planted measure", measured, **(places | fields))


def plant(claim: Claim, value: Estimate, other: Estimate) -> Verdict:
    """A verdict on a claim with these numbers wherever it compares two."""
    test = claim.test
    lower = number(other, layers=(1, 3), variant="-2")

    def compare(part: Greater) -> Comparison:
        names = [side.baseline for side in (part.left, part.right) if isinstance(side, NumberSelector)]
        right = replace(lower, baseline=names[1]) if isinstance(part.right, NumberSelector) else part.right
        return Comparison(number(value, baseline=names[0]), right, margin=part.margin)

    match test:
        case Greater():
            comparisons = [compare(test)]
        case AllOf():
            comparisons = [compare(part) for part in test.tests]
        case Between():
            comparisons = [Comparison(number(value), test.low, test.high)]
        case AnyHead():
            comparisons = [
                *([Comparison(number(value), test.threshold)] if math.isfinite(test.threshold) else []),
                *(Comparison(number(value), replace(lower, baseline=name)) for name in test.baselines),
            ]
        case AnyRow():
            effect = Comparison(number(value), lower).effect
            comparisons = [Comparison(number(value), lower, margin=test.margin, difference=effect)]
        case EachLayer():
            comparisons = [
                Comparison(number(value, layers=(layer, layer)), lower, margin=test.margin, is_below=test.lowest)
                for layer in (6, 7, 8)
            ]
        case _:
            comparisons = [Comparison(number(value), lower)]
    outcomes = {comparison.outcome for comparison in comparisons}
    outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
    return Verdict(outcome, tuple(comparisons))


numbers = st.floats(-0.95, 0.95)
halves = st.floats(0.0, 0.2)
estimates = st.builds(estimate, numbers, halves)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS.keys())
@settings(max_examples=8)
@given(value=estimates, other=estimates)
def test_every_claim_has_words_of_its_own_for_all_numbers(claim: Claim, value: Estimate, other: Estimate) -> None:
    verdict = plant(claim, value, other)
    answer = write_answer(claim, verdict)
    assert answer.startswith(OPENINGS[verdict.outcome]) and answer.endswith(".")
    assert "lanted measure" not in answer  # names of measures stand only in generic sentences
    for word in WORDS_OF_THE_MACHINERY:
        assert word not in answer, answer
    sentence = answer.removesuffix(f" Published for {claim.published_model}: {claim.published_value}.")
    assert sentence != answer


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS.values() if "|" in claim.answer], ids=lambda claim: claim.id
)
@settings(max_examples=8)
@given(value=estimates)
def test_a_word_of_direction_agrees_with_its_number(claim: Claim, value: Estimate) -> None:
    verdict = plant(claim, value, value)
    answer = write_answer(claim, verdict)
    shown = round_comparisons(verdict.comparisons, claim.unit)[0].value
    (spec,) = [placeholder.spec for placeholder in parse_template(claim.answer) if "|" in placeholder.spec]
    word = spec.split("|")[1 if shown.bare.startswith("-") else 0]
    assert f"{(shown.opposite if shown.bare.startswith('-') else shown).text} {word}" in answer


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS.keys())
def test_numbers_of_a_published_value_stand_in_its_text(claim: Claim) -> None:
    """The text is read, the numbers are drawn: they must be the same."""
    factor = 100 if claim.unit in {"percent", "points"} else 1
    for published in (claim.published, claim.published_baseline):
        ends = published if isinstance(published, tuple) else () if published is None else (published,)
        for end in ends:
            texts = [float(text) for text in re.findall(r"[-+]?\d*\.?\d+", claim.published_value)]
            assert any(abs(abs(text) - abs(end * factor)) < 1e-9 for text in texts), (claim.id, end)


def answer_of(name: str, verdict: Verdict) -> str:
    """The answer to a claim without the published value."""
    return write_answer(CLAIMS[name], verdict).rpartition(" Published for")[0]


def test_the_answer_of_the_sketch() -> None:
    value = Measurement("m", Estimate(0.887, 0.852, 0.923, 228), row="obj", head=Head(3, 3), n_cases=320)
    lower = Measurement(
        "m", Estimate(0.397, 0.343, 0.451, 228), baseline="best fixed offset", row="obj", n_cases=320, variant="-2"
    )
    comparison = Comparison(value, lower, margin=0.1, difference=Estimate(0.491, 0.433, 0.549, 228))
    untrained = Comparison(
        Measurement("m", Estimate(0.0816, 0.0513, 0.112, 228), baseline="untrained model"), lower, margin=0.1
    )
    control = ControlVerdict("untrained model", "specific", (untrained,), Estimate(0.806, 0.759, 0.853, 228))
    assert write_answer(CLAIMS["obj-head"], Verdict("holds", (comparison,), controls=(control,))) == (
        "Yes. Head 4-4 finds the verb of a direct object in 89 % of 320 cases [85, 92]; always choosing the word two "
        "places back finds 40 % [34, 45]. The difference is 49 points [43, 55]; the finding says more than 10 points. "
        "For the best head of an untrained model it is 8 % [5, 11]. Published for BERT-base: 86.8 % (head 8-10), where "
        "the best offset has 40.0 %."
    )


def test_a_false_finding_is_never_written_as_an_inequality() -> None:
    """Rollout at 0.187 was once printed as `raw attention 0.294 < rollout 0.187`."""
    value = Measurement("m", Estimate(0.187, 0.108, 0.263, 59), row="rollout")
    other = Measurement("m", Estimate(0.294, 0.214, 0.365, 59), row="raw attention")
    assert answer_of("rollout-beats-raw-attention", Verdict("inconclusive", (Comparison(value, other),))) == (
        "Undecided, because the two intervals overlap. Rollout has a rank correlation of 0.19 [0.11, 0.26] with "
        "masking tokens one by one, and raw attention one of 0.29 [0.21, 0.36], over 59 texts."
    )


def with_control(specificity: Any, control_value: float) -> str:
    claim = CLAIMS["attention-holds-syntax"]
    value = Measurement("UAS", Estimate(0.668, 0.647, 0.688, 103), row="attention")
    lower = Measurement("UAS", Estimate(0.339, 0.328, 0.352, 103), baseline="right-branching", row="attention")
    other = Measurement("UAS", estimate(control_value, 0.03, 103), baseline="distance and words", row="attention")
    difference = estimate(0.668 - control_value, 0.035)
    control = ControlVerdict("distance and words", specificity, (Comparison(other, lower, margin=0.1),), difference)
    return write_answer(claim, Verdict("holds", (Comparison(value, lower, margin=0.1),), controls=(control,)))


def test_a_simpler_baseline_that_does_as_well_is_said_first() -> None:
    """66.8 and 67.4 % would both be 67 %: equal roundings get one more digit."""
    answer = with_control("earned too", 0.674)
    assert answer.startswith(
        "Yes, but the same holds for a probe on distance and words alone. A probe on the attention"
    )
    assert "finds 66.8 % [64.7, 68.8] of" in answer
    assert "For a probe on distance and words alone it is 67.4 % [64.4, 70.4]." in answer


def test_other_relations_to_a_control() -> None:
    assert with_control("undecided", 0.6).startswith(
        "Yes, but perhaps a probe on distance and words alone does as well."
    )
    assert "A probe on distance and words alone shows it too, but less clearly: 50 % [47, 53]." in with_control(
        "stronger", 0.5
    )
    assert with_control("specific", 0.2).startswith("Yes. A probe on the attention")


@pytest.mark.parametrize(
    ("caveat", "text"),
    [
        (FewExamples(7, 10), "7 examples are too few, and 10 are needed"),
        (FewExamples(1, 10), "1 example is too few, and 10 are needed"),
        (
            LearningProbe(number(estimate(0.6)), estimate(0.088, 0.03), 253, "sentences", 100),
            "more training data might change this: the second half of 253 training sentences gave 9 points [6, 12]",
        ),
        (
            LearningProbe(number(estimate(0.6)), estimate(0.088, 0.03), 42, "examples", 100),
            "a probe with 42 training examples has not learnt enough",
        ),
    ],
)
def test_caveats_are_sentences(caveat: FewExamples | LearningProbe, text: str) -> None:
    claim = CLAIMS["trees-beyond-order"]
    assert describe_caveat(caveat, claim.unit) == text
    verdict = plant(claim, estimate(0.6), estimate(0.4))
    undecided = replace(verdict, outcome="inconclusive", caveats=(caveat,), n_training=253)
    answer = write_answer(claim, undecided)
    assert answer.startswith(f"Undecided, because {text}. In layers 4 to 7 of 8, the probe finds 60 % [58, 62]")
    assert ("The probe learnt from 253 sentences." in answer) == isinstance(caveat, FewExamples)


@pytest.mark.parametrize(
    ("name", "value", "other", "doubt"),
    [
        ("sep-takes-half-of-the-middle", estimate(0.5), estimate(0), "the interval includes 50 %"),
        ("vertical-maps", estimate(0.6), estimate(0), "the interval includes 60 %"),
        ("cls-early", estimate(0.5), estimate(0.51), "the two intervals overlap"),
        ("large-weight-small-vector", estimate(0, 0), estimate(0.01), "the interval includes zero"),
        ("amod-head", estimate(0.5), estimate(0.49), "the interval of the difference includes zero"),
        ("obj-head", estimate(0.5), estimate(0.41), "the interval of the difference includes 10 points"),
        ("cls-early", estimate(0.5, float("nan")), estimate(0.2), "there is no interval for one of the numbers"),
        ("next-token-head", estimate(0.5), estimate(0.1), "no head is clearly above what the finding says"),
    ],
)
def test_an_undecided_claim_says_why(name: str, value: Estimate, other: Estimate, doubt: str) -> None:
    verdict = plant(CLAIMS[name], value, other)
    assert verdict.outcome == "inconclusive"
    assert write_answer(CLAIMS[name], verdict).startswith(f"Undecided, because {doubt}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sep-takes-half-of-the-middle", "The finding says more than 50 %."),
        ("no-head-knows-all-relations", "The finding says less than 50 %."),
        ("vertical-maps", "The finding says between 20 % and 60 %."),
        ("some-heads-do-nothing", "The finding says a difference of less than 2 points."),
        ("heads-can-be-pruned", "The finding says a loss of less than 5 points."),
        ("shuffled-words-hurt-little", "The finding says less than 10 points."),
        ("better-without-some-head", "The finding says more than zero."),
        ("fine-tuning-is-conservative", "the finding says more than 0.3."),
    ],
)
def test_what_the_finding_says(name: str, said: str) -> None:
    assert said in write_answer(CLAIMS[name], plant(CLAIMS[name], estimate(0.7), estimate(0.1)))


def test_what_was_not_tested_says_why() -> None:
    verdict = Verdict("not applicable", obstacle="this corpus has no trees")
    assert write_answer(CLAIMS["obj-head"], verdict) == "Not tested. This corpus has no trees."


def test_a_filled_in_corpus_is_named() -> None:
    claim = CLAIMS["cls-early"]
    answer = write_answer(claim, plant(claim, estimate(0.5), estimate(0.2)), "english.conllu")
    assert answer.endswith("Tested on the built-in corpus english.conllu, because the given one lacks what this needs.")


def test_layers_that_may_be_the_peak_are_explained() -> None:
    claim = CLAIMS["surface-before-syntax"]
    assert isinstance(claim.test, PeaksInOrder)
    value = Measurement("m", Estimate(8.0, 6.0, 8.0, 90))
    other = Measurement("m", Estimate(2.0, 1.0, 3.0, 90))
    assert answer_of("surface-before-syntax", Verdict("holds", (Comparison(value, other),))) == (
        "Yes. Sentence length is predicted best at layer 2 [1, 3], word-order inversion at layer 8 [6, 8]. In brackets "
        "stand the layers that may be the best."
    )


def test_a_head_without_threshold_and_baselines_has_an_answer() -> None:
    claim = Claim.model_validate(
        {
            "id": "c",
            "statement": "A head does it.",
            "section": "1",
            "published_value": "one",
            "analysis": "a/b",
            "test": {"kind": "any head", "measure": "m"},
        }
    )
    verdict = Verdict("holds", (Comparison(Measurement("m", estimate(0.6), head=Head(0, 0)), float("-inf")),))
    assert write_answer(claim, verdict) == "Yes. M of head 1-1 is 0.60 [0.58, 0.62] (n = 356). Published: one."
