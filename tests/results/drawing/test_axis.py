"""Axes: round ticks, and powers of ten for p values."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.results.drawing.axis import Axis, format_tick


def test_an_axis_begins_at_zero_if_values_nearly_reach_it_and_is_never_empty() -> None:
    assert Axis.over(np.array([0.1, 1.0])) == Axis(0.0, 1.0)
    assert Axis.over(np.array([0.8, 1.0])) == Axis(0.8, 1.0)
    flat = Axis.over(np.array([0.5, 0.5, np.nan]))
    assert flat.low < 0.5 < flat.high and flat.position(0.5) == 0.5


def test_p_values_are_on_powers_of_ten() -> None:
    axis = Axis.over(np.array([0.002, 0.5]), is_p_value=True)
    assert [label for _, label in axis.ticks()] == ["1", "0.1", "0.01", "0.001"]
    assert axis.position(0.1) - axis.position(0.01) == pytest.approx(1 / 3)
    floor = Axis.over(np.array([0.0, 1e-12, 0.5]), is_p_value=True)
    assert floor.position(0.0) == floor.position(1e-12) == 0 and floor.ticks()[-1][1] == "≤ 0.0001"


@pytest.mark.parametrize(("number", "text"), [(0.0, "0"), (-0.25, "−0.25"), (100.0, "100"), (1e-6, "1e−6")])
def test_ticks_are_short(number: float, text: str) -> None:
    assert format_tick(number) == text
