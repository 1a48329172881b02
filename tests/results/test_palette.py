"""Colours have enough contrast, and the luminance of ramps is monotonic."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.results.palette import PALETTES, Palette, css_variables, shade


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_colours_have_enough_contrast_with_the_background(palette: Palette) -> None:
    assert contrast(palette.foreground, palette.background) > 7
    for colour in (palette.muted, palette.accent, palette.holds, palette.fails, palette.inconclusive):
        assert contrast(colour, palette.background) > 4.5
    assert all(contrast(colour, palette.background) > 2.5 for colour in palette.series[:8])


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_the_luminance_of_a_ramp_is_monotonic(palette: Palette) -> None:
    for ramp in (palette.above, palette.below):
        steps = np.diff([luminance(shade(ramp, strength)) for strength in np.linspace(0, 1, 16)])
        assert (steps > 0).all() or (steps < 0).all()


def test_shades_begin_and_end_with_the_ramp() -> None:
    ramp = PALETTES["light"].above
    assert (shade(ramp, 0.0), shade(ramp, 1.0), shade(ramp, 2.0)) == (ramp[0], ramp[-1], ramp[-1])
    assert shade(("#000000", "#ffffff"), 0.5) == "#808080"


def test_colours_are_css_variables() -> None:
    assert "--background: #16181c;" in css_variables("dark") and "--holds: #00695c;" in css_variables("light")
