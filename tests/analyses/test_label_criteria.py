"""Criteria of head labels: least score, distance from the highest baseline, intervals and sample size."""

from __future__ import annotations

import pytest

from bertology.analyses import registry
from bertology.analyses.label_criteria import (
    MIN_N,
    NEIGHBOUR_SHARE,
    OTHER,
    WORD_CHOICE,
    HeadLabelling,
    LabelCriterion,
)
from bertology.estimates.estimate import Estimate
from bertology.estimates.hypothesis_tests import MIN_UNITS


def estimate(value: float, half_width: float = 0.01, n: int = 30) -> Estimate:
    return Estimate(value, value - half_width, value + half_width, n)


@pytest.mark.parametrize(
    ("criterion", "score", "baseline", "is_met"),
    [
        (NEIGHBOUR_SHARE, 0.51, 0.06, True),
        (NEIGHBOUR_SHARE, 0.085, 0.063, False),  # above uniform attention, but no previous-word head
        (NEIGHBOUR_SHARE, 0.6, 0.35, False),  # a neighbour in very short sentences
        (WORD_CHOICE, 0.58, 0.45, True),
        (WORD_CHOICE, 0.53, 0.45, False),
        (WORD_CHOICE, 0.30, 0.05, False),
        (LabelCriterion(0.2), float("nan"), 0.1, False),
    ],
)
def test_a_score_must_be_strong_and_far_from_the_baseline(
    criterion: LabelCriterion, score: float, baseline: float, is_met: bool
) -> None:
    assert criterion.is_met(score, baseline) is is_met


def test_the_interval_must_lie_above_all_baselines() -> None:
    labelling = HeadLabelling(rank=1, criteria={OTHER: WORD_CHOICE}, ignored_baselines=("full system",))
    low, high = {"chance": estimate(0.1)}, {"chance": estimate(0.1), "offset": estimate(0.5)}
    assert labelling.is_met((), estimate(0.7), low) and labelling.is_met((), estimate(0.7), high)
    assert not labelling.is_met((), estimate(0.7, half_width=0.25), high)
    assert not labelling.is_met((), estimate(0.7), {})
    assert labelling.is_met((), estimate(0.7), {**low, "full system": estimate(0.9)})


def test_few_sentences_label_no_head() -> None:
    labelling, baselines = HeadLabelling(rank=1, criteria={OTHER: WORD_CHOICE}), {"chance": estimate(0.1)}
    assert MIN_N == MIN_UNITS
    assert labelling.is_met((), estimate(0.9, n=MIN_N), baselines)
    assert not labelling.is_met((), estimate(0.9, n=MIN_N - 1), baselines)


def test_the_most_specific_criterion_counts() -> None:
    labelling = HeadLabelling(rank=1, criteria={"positional": LabelCriterion(0.9), OTHER: LabelCriterion(0.3)})
    baselines = {"chance": estimate(0.1)}
    assert labelling.is_met(("nsubj",), estimate(0.5), baselines)
    assert not labelling.is_met(("positional", "next word"), estimate(0.5), baselines)
    assert not HeadLabelling(rank=1, criteria={"a": LabelCriterion(0.1)}).is_met(("b",), estimate(0.5), baselines)


def test_the_thresholds_are_in_the_description_of_an_analysis() -> None:
    description = registry.get("attention/word_patterns").description
    assert "at least 0.5 and 2 times the highest baseline (next word, previous word)" in description
    assert "at least 0.5 and 0.1 above the highest baseline" in registry.get("heads/dependency").description
    assert "labelled" not in registry.get("attention/entropy").description
