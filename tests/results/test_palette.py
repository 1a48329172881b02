"""Colours have enough contrast, differ under colour blindness, and the luminance of ramps is monotonic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bertology.arrays import FloatArray
from bertology.results.drawing.style import COLOUR_STEPS, STRONGEST
from bertology.results.palette import (
    PALETTES,
    Palette,
    contrast_ratio,
    css_variables,
    readable_ink,
    relative_luminance,
    shade,
)

DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
"""Simulation of full colour blindness in linear RGB (Machado et al. 2009)."""
SIGHTS = {"normal": np.eye(3), "deuteranopia": DEUTERANOPIA, "protanopia": PROTANOPIA}
MIN_DIFFERENCE = 8.0
"""Least CIEDE2000 difference of two colours of a palette, under each kind of sight."""


def linear_rgb(colour: str) -> FloatArray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: FloatArray) -> FloatArray:
    """CIELAB of linear RGB, for the white of sRGB."""
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    xyz = to_xyz @ rgb / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(first: FloatArray, second: FloatArray) -> float:
    """The colour difference of Luo, Cui and Rigg (2001), as in Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(chroma**7 / (chroma**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    hue = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    d_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(hue / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + h2 if c1 * c2 == 0 else (h1 + hue / 2) % 360
    t = (
        1
        - 0.17 * np.cos(np.radians(mean_h - 30))
        + 0.24 * np.cos(np.radians(2 * mean_h))
        + 0.32 * np.cos(np.radians(3 * mean_h + 6))
        - 0.20 * np.cos(np.radians(4 * mean_h - 63))
    )
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    rotation = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    rotation *= np.sin(np.radians(60 * np.exp(-(((mean_h - 275) / 25) ** 2))))
    d_l, d_c, d_h = (l2 - l1) / s_l, (c2 - c1) / s_c, d_hue / s_h
    return float(np.sqrt(d_l**2 + d_c**2 + d_h**2 + rotation * d_c * d_h))


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ],
)
def test_the_colour_difference_agrees_with_published_values(
    first: tuple[float, ...], second: tuple[float, ...], difference: float
) -> None:
    assert ciede2000(np.array(first), np.array(second)) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_colours_differ_under_colour_blindness(palette: Palette, sight: str) -> None:
    roles = (palette.series[0], palette.untrained, palette.published, palette.baseline)
    for colours in (palette.series, roles):
        seen = [lab(np.clip(SIGHTS[sight] @ linear_rgb(colour), 0, 1)) for colour in colours]
        for (i, first), (j, second) in itertools.combinations(enumerate(seen), 2):
            difference = ciede2000(first, second)
            assert difference >= MIN_DIFFERENCE, f"{colours[i]} and {colours[j]}: {difference:.1f}"


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_colours_have_enough_contrast_with_the_background(palette: Palette) -> None:
    assert contrast_ratio(palette.foreground, palette.background) > 7
    roles = (palette.series[0], palette.untrained, palette.published, palette.baseline)
    for colour in (palette.muted, palette.accent, palette.holds, palette.fails, palette.inconclusive, *roles):
        assert contrast_ratio(colour, palette.background) >= 4.5  # all of them are colours of text
    assert all(contrast_ratio(colour, palette.background) >= 3 for colour in palette.series)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_numbers_in_cells_can_be_read(palette: Palette) -> None:
    for ramp in (palette.above, palette.below):
        for step in range(COLOUR_STEPS):
            cell = shade(ramp, STRONGEST * step / (COLOUR_STEPS - 1))
            assert contrast_ratio(readable_ink(cell), cell) >= 4.5


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_the_luminance_of_a_ramp_is_monotonic(palette: Palette) -> None:
    for ramp in (palette.above, palette.below):
        steps = np.diff([relative_luminance(shade(ramp, strength)) for strength in np.linspace(0, 1, 16)])
        assert (steps > 0).all() or (steps < 0).all()


def test_shades_begin_and_end_with_the_ramp() -> None:
    ramp = PALETTES["light"].above
    assert (shade(ramp, 0.0), shade(ramp, 1.0), shade(ramp, 2.0)) == (ramp[0], ramp[-1], ramp[-1])
    assert shade(("#000000", "#ffffff"), 0.5) == "#808080"


def test_colours_are_css_variables() -> None:
    assert "--background: #16181c;" in css_variables("dark") and "--holds: #00695c;" in css_variables("light")
