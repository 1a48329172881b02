"""Rounding: as many digits as the interval supports, and never numbers that contradict the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bertology.claims.rounding import Unit, format_constant, round_comparisons, round_estimate
from bertology.claims.verdict import Comparison, Measurement
from bertology.estimates.estimate import Estimate

UNITS: tuple[Unit, ...] = ("number", "percent", "points", "nats", "bits", "layer")
# Numbers on a grid lie near limits and near each other more often than any real numbers.
numbers = st.one_of(st.integers(-999, 999).map(lambda n: n / 1000), st.integers(-99, 99).map(lambda n: 0.5 + n / 10000))
widths = st.one_of(st.floats(0.0, 0.3), st.integers(0, 20).map(lambda n: n / 10000))


def measurement(value: float, below: float, above: float, **fields: Any) -> Measurement:
    """A number whose interval reaches so far below and above it."""
    return Measurement("m", Estimate(value, value - below, value + above, 100), **fields)


measurements = st.builds(measurement, numbers, widths, widths)
comparisons = st.builds(
    Comparison, measurements, st.one_of(measurements, numbers), margin=st.sampled_from([0.0, 0.05, 0.1, 0.3])
)


def near_the_end(number: Measurement, distance: float) -> Comparison:
    """A limit close to the end of the interval, where rounding could move the end across it."""
    return Comparison(number, number.estimate.low - distance)


near_a_limit = st.builds(near_the_end, measurements, st.floats(-0.003, 0.003))


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text", "interval"),
    [
        (0.887, 0.852, 0.923, "percent", "89 %", "[85, 92]"),
        (0.105, 0.101, 0.109, "percent", "10.5 %", "[10.1, 10.9]"),
        (0.105, 0.10499, 0.10501, "percent", "10.5 %", ""),  # the interval is narrower than what is shown
        (0.00031, 0.0002, 0.0004, "percent", "0.03 %", "[0.02, 0.04]"),  # not zero
        (0.9, 0.5, 1.04, "percent", "90 %", "[50, 100]"),  # no proportion is above 1
        (0.01, -0.01, 0.03, "points", "1 point", "[-1, 3]"),
        (0.187, 0.108, 0.263, "number", "0.19", "[0.11, 0.26]"),
        (1.387, 1.37, 1.41, "nats", "1.39 nats", "[1.37, 1.41]"),
        (-0.0004, -0.05, 0.05, "number", "0.00", "[-0.05, 0.05]"),  # no minus before zero
        (5.0, 3.0, 7.0, "layer", "layer 5", "[3, 7]"),
        (2.86, 2.38, 3.2, "layer", "layer 2.9", "[2.4, 3.2]"),
        (0.5, float("nan"), float("nan"), "percent", "50 %", ""),
    ],
)
def test_digits_follow_the_interval(
    value: float, low: float, high: float, unit: Unit, text: str, interval: str
) -> None:
    rounded = round_estimate(Estimate(value, low, high, 90), unit)
    assert (rounded.text, rounded.interval) == (text, interval)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [(0.5, "percent", "50 %"), (0.1, "points", "10 points"), (0.3, "number", "0.3"), (0.0, "nats", "0 nats")],
)
def test_constants_have_all_their_digits(number: float, unit: Unit, text: str) -> None:
    assert format_constant(number, unit) == text


def test_a_number_beside_a_bar_gets_the_digits_that_tell_them_apart() -> None:
    """50.04 % is above one half; `50.0 %` would deny the verdict."""
    (rounded,) = round_comparisons([Comparison(measurement(0.5012, 0.0008, 0.0008), 0.5)], "percent")
    assert rounded.comparison.outcome == "holds"
    assert (rounded.value.text, rounded.value.interval) == ("50.12 %", "[50.04, 50.20]")


@pytest.mark.parametrize(("value", "limit", "text"), [(0.146, 0.148, "14.6 %"), (0.154, 0.152, "15.4 %")])
def test_a_number_that_nothing_tells_from_its_limit_stays_on_its_side(value: float, limit: float, text: str) -> None:
    """14.6 % is below 14.8 %; `15 %` would lie above, although the interval supports no more digits."""
    (rounded,) = round_comparisons([Comparison(measurement(value, 0.04, 0.04), limit)], "percent")
    assert rounded.comparison.outcome == "inconclusive"
    assert rounded.value.text == text


def test_a_number_without_an_interval_gets_the_digits_of_the_one_it_is_compared_with() -> None:
    exact, measured = measurement(1 / 3, 0.0, 0.0), measurement(0.5, 0.004, 0.004)
    for comparison in (Comparison(exact, measured), Comparison(measured, exact)):
        (rounded,) = round_comparisons([comparison], "percent")
        assert rounded.other is not None
        assert {rounded.value.text, rounded.other.text} == {"33.3 %", "50.0 %"}


def test_two_different_numbers_do_not_look_equal() -> None:
    comparison = Comparison(measurement(0.668, 0.02, 0.02), measurement(0.674, 0.03, 0.03))
    (rounded,) = round_comparisons([comparison], "percent")
    assert rounded.other is not None
    assert (rounded.value.text, rounded.other.text) == ("66.8 %", "67.4 %")


def test_numbers_that_nothing_tells_apart_may_look_equal() -> None:
    comparison = Comparison(measurement(0.131263, 0.01, 0.01), measurement(0.131262999, 0.01, 0.01))
    assert round_comparisons([comparison], "percent")[0].value.text == "13 %"


def test_a_baseline_without_interval_has_the_digits_of_what_it_is_compared_with() -> None:
    comparison = Comparison(measurement(0.235, 0.0012, 0.0012), measurement(0.0614159, 0.0, 0.0))
    (rounded,) = round_comparisons([comparison], "percent")
    assert rounded.other is not None and rounded.other.text == "6.1 %"
    exact = replace(comparison, lower=measurement(0.5, 0.0, 0.0))
    (rounded,) = round_comparisons([exact], "percent")
    assert rounded.other is not None and rounded.other.text == "50 %"


def test_one_number_looks_the_same_in_all_its_comparisons() -> None:
    value = measurement(0.5012, 0.0008, 0.0008)
    first, second = round_comparisons([Comparison(value, 0.1), Comparison(value, 0.5)], "percent")
    assert first.value.text == second.value.text == "50.12 %"


@given(st.one_of(comparisons, near_a_limit), st.sampled_from(UNITS))
@example(near_the_end(measurement(0.5046, 0.16225316720560462, 0.0004), 2.9795537793165696e-12), "bits")
@example(near_the_end(measurement(-0.948, 0.011454606161725412, 0.2334975648369314), 1.9151426871676198e-11), "layer")
def test_shown_numbers_give_the_verdict(comparison: Comparison, unit: Unit) -> None:
    (rounded,) = round_comparisons([comparison], unit)
    value = replace(comparison.value, estimate=rounded.value.rounded)
    lower = comparison.lower
    if isinstance(lower, Measurement):
        assert rounded.other is not None
        lower = replace(lower, estimate=rounded.other.rounded)
    if comparison.outcome != "inconclusive":
        assert replace(comparison, value=value, lower=lower).outcome == comparison.outcome


@given(measurements, st.sampled_from(UNITS))
@example(measurement(0.0, 0.0, 5e-324), "number")
def test_the_shown_value_lies_in_the_shown_interval(number: Measurement, unit: Unit) -> None:
    shown = round_estimate(number.estimate, unit)
    if shown.interval:
        low, high = map(float, shown.interval.strip("[]").split(", "))
        assert low <= float(shown.bare) <= high and low < high


@given(measurements, st.sampled_from(UNITS))
@example(measurement(0.0, 0.0, 5e-324), "number")
def test_no_digit_is_further_from_the_number_than_its_interval(number: Measurement, unit: Unit) -> None:
    shown = round_estimate(number.estimate, unit).rounded
    half_width = (number.estimate.high - number.estimate.low) / 2
    resolution = {"percent": 0.01, "points": 0.01, "layer": 0.1}.get(unit, 0.01)
    assert abs(shown.value - number.estimate.value) <= max(half_width, resolution) * (1 + 1e-9)
