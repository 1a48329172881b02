"""Strips: each kind of mark at its place, scales that hold all numbers, and lanes with names and numbers."""

from __future__ import annotations

import re

import pytest

from bertology.estimates.estimate import Estimate
from bertology.results.drawing.strip import (
    HEIGHT,
    MARGIN,
    MARK_NAMES,
    SHARES,
    WIDTH,
    MarkKind,
    StripMark,
    draw_lanes,
    draw_sign,
    draw_strip,
    strip_rules,
    strip_scale,
)
from bertology.results.palette import PALETTES


def mark(kind: MarkKind, value: float, low: float | None = None, high: float | None = None) -> StripMark:
    return StripMark(kind, value, value if low is None else low, value if high is None else high, kind, f"{value:g}")


def test_the_estimate_stands_at_its_value_with_its_interval() -> None:
    strip = draw_strip([mark("estimate", 0.5, 0.25, 0.75)], SHARES, "label")
    assert f'cx="{WIDTH // 2}"' in strip and f'cy="{HEIGHT // 2}"' in strip
    length = WIDTH - 2 * MARGIN
    ends = re.search(r'points="([\d.]+),[\d.]+ ([\d.]+),[\d.]+" class="range-estimate"', strip)
    assert ends is not None
    assert [float(end) for end in ends.groups()] == pytest.approx([MARGIN + length / 4, MARGIN + 3 * length / 4])
    assert 'aria-label="label"' in strip and "<title>estimate: 0.5</title>" in strip


def test_each_kind_has_its_own_sign() -> None:
    signs = {str(draw_sign(kind)) for kind in MARK_NAMES}
    assert len(signs) == len(MARK_NAMES) == 5 and not any("<title>" in sign for sign in signs)
    strip = draw_strip([mark(kind, 0.5) for kind in MARK_NAMES], SHARES, "label")
    for kind in MARK_NAMES:
        assert f"<title>{kind}: 0.5</title>" in strip


def test_marks_outside_the_scale_stand_at_its_end_and_missing_ones_are_left_out() -> None:
    strip = draw_strip([mark("estimate", 2.0), mark("baseline", float("nan"))], SHARES, "label")
    assert f'cx="{WIDTH - MARGIN}"' in strip and "mark-baseline" not in strip


def test_the_ends_of_the_scale_are_written_on_request() -> None:
    marks = [mark("estimate", 2.5)]
    assert ">5 nats</text>" in draw_strip(marks, (0.0, 5.0), "label", ends=("0", "5 nats"))
    assert "<text" not in draw_strip(marks, (0.0, 5.0), "label")


def test_lanes_have_a_name_and_a_number_each() -> None:
    lanes = draw_lanes([mark("estimate", 0.9), mark("untrained", 0.1)], SHARES, "label")
    assert [text in lanes for text in (">estimate</text>", ">0.9</text>", ">untrained</text>", ">0.1</text>")] == [
        True
    ] * 4
    heights = re.findall(r'<polyline points="[\d.]+,([\d.]+)', lanes)
    assert len(set(heights)) == 2


def test_a_scale_holds_all_numbers() -> None:
    low, high = strip_scale([mark("estimate", 3.0, 2.5, 3.5), mark("published", 4.0)])
    assert low <= 2.5 and high >= 4.0
    assert strip_scale([]) == SHARES
    low, high = strip_scale([mark("estimate", 1.0)])
    assert low < high


def test_a_strip_with_one_tooltip_has_none_on_its_marks() -> None:
    strip = draw_strip([mark("estimate", 0.5)], SHARES, "label", has_tips=False)
    assert "<title>" not in strip and "mark-estimate" in strip


def test_an_estimate_without_an_interval_is_a_dot() -> None:
    exact = StripMark.of("estimate", Estimate(0.3, float("nan"), float("nan"), 0, "exact"), "m", "0.3")
    assert (exact.low, exact.high) == (0.3, 0.3) and "range-estimate" not in draw_strip([exact], SHARES, "label")


def test_the_style_has_every_mark_in_both_themes() -> None:
    for palette in PALETTES.values():
        rules = " ".join(strip_rules(palette))
        for name in ("estimate", "baseline", "untrained", "published"):
            assert f".mark-{name} " in rules
        assert palette.untrained in rules and palette.published in rules
