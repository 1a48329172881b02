"""Strips: every number of a verdict is on one scale and inside the axis."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from bertology.claims.claim import Claim
from bertology.claims.strip import strip
from bertology.claims.verdict import Comparison, Measurement, Verdict
from bertology.estimates.estimate import Estimate
from bertology.results.shapes import Head

SELECTOR = {"measure": "m"}
GREATER = {"kind": "greater", "left": SELECTOR, "right": 0.5}
ANY_HEAD = {"kind": "any head", "measure": "m", "threshold": 0.5}


def claim(test: dict[str, Any], **fields: Any) -> Claim:
    """A claim with this test."""
    given = {"id": "c", "statement": "It is so.", "section": "1", "published_value": "yes", "analysis": "a/b"}
    return Claim.model_validate({**given, "test": test, **fields})


def number(value: float, half_width: float = 0.02, **fields: Any) -> Measurement:
    """A measured number with its interval."""
    return Measurement("m", Estimate(value, value - half_width, value + half_width, 100), **fields)


def test_a_number_beside_a_constant_and_the_published_value() -> None:
    verdict = Verdict("fails", (Comparison(number(0.11, layers=(4, 7), n_layers=8), 0.5),))
    made = strip(claim(GREATER, unit="percent", published=(0.48, 0.57)), verdict)
    assert made is not None
    assert (made.measured.name, made.measured.estimate.value) == ("layers 4-7 of 8", 0.11)
    assert (made.baseline, made.untrained, made.required, made.published) == (None, None, 0.5, (0.48, 0.57))
    assert (made.unit, made.axis) == ("percent", (0.0, 1.0))


def test_a_margin_stands_above_the_baseline() -> None:
    lower = number(0.37, baseline="best fixed offset")
    verdict = Verdict("holds", (Comparison(number(0.88, head=Head(3, 3)), lower, margin=0.1),))
    made = strip(claim(GREATER, unit="percent"), verdict)
    assert made is not None and made.baseline is not None
    assert (made.measured.name, made.baseline.name, made.required) == ("head 4-4", "best fixed offset", 0.37 + 0.1)


def test_the_measured_number_is_drawn_where_the_claim_says_that_a_baseline_exceeds_it() -> None:
    comparison = Comparison(number(0.5, 0.0, baseline="assumed"), number(0.2), margin=0.1)
    made = strip(claim(GREATER), Verdict("holds", (comparison,)))
    assert made is not None and made.baseline is not None
    assert (made.measured.estimate.value, made.baseline.name, made.required) == (0.2, "assumed", 0.4)


def test_heads_are_drawn_beside_their_highest_simple_baseline_and_the_untrained_model() -> None:
    value = number(0.8, head=Head(2, 2))
    comparisons = (
        Comparison(value, 0.5),
        Comparison(value, number(0.1, baseline="uniform attention")),
        Comparison(value, number(0.2, baseline="same-distance tokens")),
        Comparison(value, number(0.3, baseline="untrained model")),
    )
    untrained = (Comparison(number(0.35, head=Head(0, 1)), 0.5),)
    made = strip(claim(ANY_HEAD, unit="percent"), Verdict("holds", comparisons, untrained=untrained))
    assert made is not None and made.baseline is not None and made.untrained is not None
    assert (made.baseline.name, made.untrained.value, made.measured.name) == ("same-distance tokens", 0.35, "head 3-3")


def test_of_several_comparisons_the_one_that_speaks_most_against_the_claim_is_drawn() -> None:
    """0.7 exceeds 0.1 by far, but hardly by the margin that is required."""
    comparisons = (
        Comparison(number(0.8, layers=(1, 1), n_layers=8), number(0.6, row="a"), margin=0.1),
        Comparison(number(0.7, layers=(2, 2), n_layers=8), number(0.1, row="b"), margin=0.55),
        Comparison(number(0.9, layers=(3, 3), n_layers=8), number(0.3, row="c"), margin=0.1),
    )
    for order in permutations(comparisons):
        made = strip(claim(GREATER), Verdict("holds", order))
        assert made is not None and made.baseline is not None
        assert (made.measured.name, made.baseline.name) == ("layer 2 of 8", "b")


def test_a_comparison_with_the_untrained_model_has_no_second_baseline() -> None:
    made = strip(claim(GREATER), Verdict("holds", (Comparison(number(0.8), number(0.2, baseline="untrained model")),)))
    assert made is not None and made.baseline is None
    assert made.untrained is not None and made.untrained.value == 0.2


@pytest.mark.parametrize(
    ("unit", "values", "axis"),
    [
        ("percent", (0.2, 0.1), (0.0, 1.0)),
        ("number", (0.2, 0.1), (0.0, 1.0)),
        ("number", (-0.2, 0.1), (-1.0, 1.0)),
        ("nats", (3.6, 1.7), (0.0, 5.0)),
        ("points", (0.012, -0.003), (-0.05, 0.05)),
    ],
)
def test_the_axis_holds_every_number(unit: str, values: tuple[float, float], axis: tuple[float, float]) -> None:
    made = strip(claim(GREATER, unit=unit), Verdict("holds", (Comparison(number(values[0]), number(values[1])),)))
    assert made is not None and made.axis == pytest.approx(axis)


def test_layers_of_a_model_of_another_depth_are_no_published_value() -> None:
    comparison = Comparison(number(3.4, n_layers=8), number(2.0, n_layers=8))
    made = strip(claim(GREATER, unit="layer", published=5.69), Verdict("holds", (comparison,)))
    assert made is not None and (made.published, made.axis) == (None, (0.0, 8.0))


def test_what_was_not_measured_has_no_strip() -> None:
    assert strip(claim(GREATER), Verdict("not applicable", obstacle="no trees")) is None


def test_records_have_no_infinities() -> None:
    value = number(0.8, float("inf"))
    made = strip(
        claim({"kind": "between", "value": SELECTOR, "low": 0, "high": 1}),
        Verdict("holds", (Comparison(value, 0.0, 1.0),)),
    )
    assert made is not None
    record = json.loads(json.dumps(made.as_record(), allow_nan=False))
    assert record["measured"]["estimate"]["low"] is None and record["required"] == [0.0, 1.0]
