"""Widths in the units of paper and screen."""

from __future__ import annotations

import pytest

from bertology.errors import Refusal
from bertology.results.drawing.length import parse_width


@pytest.mark.parametrize("text", ["85mm", "8.5cm", "3.34646in", "240.945pt", "321.26px", " 85 mm "])
def test_units_are_converted_to_points(text: str) -> None:
    assert parse_width(text) == pytest.approx(85 * 72 / 25.4, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "found"), [("85", "not a length"), ("wide", "not a length"), ("-85mm", "length"), ("5mm", "5 mm")]
)
def test_what_is_no_useful_width_is_refused(text: str, found: str) -> None:
    with pytest.raises(Refusal, match=found):
        parse_width(text)
