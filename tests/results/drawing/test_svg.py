"""SVG elements: escaped, valid XML, and round ticks."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from bertology.estimates.estimate import Estimate
from bertology.results.drawing.svg import (
    element,
    fit_label,
    format_estimate,
    text,
    text_width,
    ticks,
    truncate_label,
    truncate_middle,
    wrap_label,
)


def test_text_and_attributes_are_escaped() -> None:
    svg = element("text", "</text><script>", tip='"quoted" & <b>', class_='a"b')
    parsed = ElementTree.fromstring(svg)
    assert parsed.text == "</text><script>" and parsed.get("class") == 'a"b'
    title = parsed.find("title")
    assert title is not None and title.text == '"quoted" & <b>'


@pytest.mark.parametrize("content", ["\x00\x07\x1b[31m", "\ud800", "\ufffe"])
def test_characters_that_xml_forbids_are_replaced(content: str) -> None:
    assert "\ufffd" in (ElementTree.fromstring(text(0, 0, content, tip=content)).text or "")


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.993, 1.09), (-0.0072, 0.74), (3e-5, 4e-4), (-70.0, 1300.0)])
def test_ticks_are_distinct_round_numbers(low: float, high: float) -> None:
    numbers = ticks(low, high)
    assert 3 <= len(numbers) <= 6 and low <= min(numbers) + 1e-12 and max(numbers) <= high + 1e-12
    assert len({f"{tick:.6g}" for tick in numbers}) == len(numbers)
    steps = np.diff(numbers)
    assert np.allclose(steps, steps[0]) and all(
        len(f"{tick:.6g}".lstrip("-0.").replace(".", "")) <= 4 for tick in numbers
    )


def test_an_empty_range_has_one_tick() -> None:
    assert ticks(0.5, 0.5) == [0.5]


def test_estimates_are_formatted_with_what_they_have() -> None:
    nan = float("nan")
    assert format_estimate(Estimate(0.25, 0.125, 0.5, 9)) == "0.25 [0.125, 0.5], n = 9"
    assert format_estimate(Estimate(0.25, nan, nan, 1)) == "0.25, n = 1"
    assert format_estimate(Estimate(0.5, 0.5, 0.5, 0, "exact")) == "0.5"
    assert format_estimate(Estimate(nan, nan, nan, 0)) == "not measured"
    assert format_estimate(Estimate(25.0, 12.5, 50.0, 9), "%") == "25 % [12.5, 50], n = 9"


def test_long_labels_are_cut_and_wide_characters_count_twice() -> None:
    assert truncate_middle("mini-short-seed-0/checkpoint-130", 20) == "mini-short…point-130"
    assert truncate_middle("short", 10) == "short"
    assert truncate_label("a" * 30, 10) == "a" * 9 + "…" and truncate_label("short", 10) == "short"
    assert text_width("东京", 10) == 20 and text_width("e\u0301") == text_width("e")


def test_widths_are_those_of_helvetica() -> None:
    assert text_width("i", 1000) == 222 and text_width("W", 1000) == 944 and text_width("i", 10, 0.6) == 6


def test_lines_and_labels_fit_their_width() -> None:
    words = "attention to the previous token of a sentence with many words"
    lines = wrap_label(words, 100)
    assert " ".join(lines) == words and all(text_width(line) <= 100 for line in lines) and len(lines) > 2
    cut = fit_label(words, 100)
    assert cut.endswith("…") and text_width(cut) <= 100.5 and fit_label("short", 100) == "short"
