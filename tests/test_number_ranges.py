"""Ranges of numbers: what is declared is what is accepted, and a number that is not finite never is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Interval
from hypothesis import given
from hypothesis import strategies as st

from bertology.errors import Refusal
from bertology.number_ranges import (
    COUNT,
    FRACTION,
    MAX_COUNT,
    PROPORTION,
    NumberRange,
    check_fields,
    check_number,
    parse_whole_number,
    range_of_hint,
    shorten_value,
    to_range,
)

NOT_FINITE = (math.nan, math.inf, -math.inf, np.float32("nan"))


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.booleans())
def test_ends_belong_to_a_range_unless_they_are_excluded(value: float, no_minimum: bool, no_maximum: bool) -> None:
    bounds = NumberRange(-1, 1, no_minimum, no_maximum)
    assert (value in bounds) == (-1 < value < 1 or (value == -1 and not no_minimum) or (value == 1 and not no_maximum))
    assert (-1 in bounds) is not no_minimum and (1 in bounds) is not no_maximum


@pytest.mark.parametrize("bounds", [NumberRange(), to_range(PROPORTION), to_range(COUNT)])
def test_no_range_has_numbers_that_are_not_finite(bounds: NumberRange) -> None:
    assert not any(value in bounds for value in NOT_FINITE)


def test_ranges_come_from_the_annotation() -> None:
    assert range_of_hint(Annotated[int, "a count"]) == NumberRange(0, MAX_COUNT, is_whole=True)
    assert range_of_hint(Annotated[int, Ge(2), "a count"]) == NumberRange(2, MAX_COUNT, is_whole=True)
    assert range_of_hint(Annotated[int | Literal["auto"], "a layer"]) == NumberRange(
        -MAX_COUNT, MAX_COUNT, is_whole=True
    )
    assert range_of_hint(Annotated[float, "any"]) == NumberRange()
    assert range_of_hint(Annotated[float | None, FRACTION]) == NumberRange(0, 1, True, True)
    assert range_of_hint(Annotated[bool, "whether"]) is range_of_hint(Annotated[str, "text"]) is None


@pytest.mark.parametrize(
    ("interval", "words", "help_text"),
    [
        (PROPORTION, "from 0 to 1", " [from 0 to 1]"),
        (FRACTION, "above 0 and below 1", " [above 0 and below 1]"),
        (COUNT, "from 1 to 1,000,000,000", " [at least 1]"),
        (Interval(gt=0, le=100), "above 0 and at most 100", " [above 0 and at most 100]"),
        (Interval(ge=0.5), "of at least 0.5", " [at least 0.5]"),
        (Interval(), "", ""),
    ],
)
def test_a_range_is_described_in_words(interval: Interval, words: str, help_text: str) -> None:
    assert str(to_range(interval)) == words and to_range(interval).help_text == help_text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "--share was given nan. Expected a number from 0 to 1. The share."),
        (10**5000, "a whole number of about 5,001 digits"),
        (-(10**30), "digits"),
        (np.int64(7), "--share was given 7"),
    ],
    ids=["not a number", "long", "negative", "NumPy"],
)
def test_a_number_outside_of_its_range_is_refused_in_one_paragraph(value: Any, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_number(value, to_range(PROPORTION), "--share", "The share")
    assert message in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 300


def test_other_values_are_left_to_others() -> None:
    for value in ("nan", None, True, "auto"):
        check_number(value, to_range(FRACTION), "--share", "")


@dataclass(frozen=True)
class Config:
    rate: Annotated[float | None, PROPORTION] = None
    name: str = ""

    def __post_init__(self) -> None:
        check_fields(self)


def test_the_fields_of_a_dataclass_are_checked() -> None:
    assert Config(0.5).rate == 0.5 and Config(name="x").rate is None
    with pytest.raises(Refusal, match=r"Config.rate was given nan. Expected a number from 0 to 1"):
        Config(math.nan)


@pytest.mark.parametrize("text", ["", "x", "²", "٣", "1_000", " 1", "1.0", "+1", "9" * 5000, "1000000001", "-1"])
def test_texts_that_are_no_whole_number_in_range_give_none(text: str) -> None:
    assert parse_whole_number(text) is None


def test_whole_numbers_are_parsed() -> None:
    assert parse_whole_number("0") == 0 and parse_whole_number("-3", Interval(ge=-3, le=3)) == -3
    assert parse_whole_number("0", COUNT) is None


def test_long_values_are_cut() -> None:
    assert len(shorten_value("x" * 10_000)) < 100 and shorten_value("a\nb") == repr("a\nb")
