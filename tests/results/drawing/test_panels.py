"""The colour scale is linear on both sides of the baseline."""

from __future__ import annotations

import numpy as np

from bertology.results.drawing.panels import ColourScale
from bertology.results.drawing.style import COLOUR_STEPS


def test_equal_differences_are_equal_steps_of_colour() -> None:
    scale = ColourScale.of(np.array([0.0, 0.3, 1.0, np.nan]), 0.3)
    assert (scale.low, scale.high) == (0.0, 1.0)
    np.testing.assert_allclose([scale.strength(0.0), scale.strength(1.0)], [3 / 7, 1])
    assert scale.class_of(0.3) == "up0" and scale.class_of(1.0) == f"up{COLOUR_STEPS - 1}"
    assert scale.class_of(0.0) == f"down{round(3 / 7 * (COLOUR_STEPS - 1))}"


def test_a_scale_without_values_is_not_empty() -> None:
    scale = ColourScale.of(np.array([np.nan]), 0.0)
    assert scale.high > scale.low and scale.strength(0.0) == 0


def test_the_bar_shows_both_ends_and_a_central_baseline() -> None:
    bar = ColourScale.of(np.array([-1.0, 1.0]), 0.0).bar(0, 0, 200)
    assert ">-1<" in bar and ">1<" in bar and ">0<" in bar
    assert "≈ 0" in ColourScale.of(np.array([1e-9, 1.0]), 1e-9).bar(0, 0, 200)
