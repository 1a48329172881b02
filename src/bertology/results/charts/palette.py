"""The colours of figures, for light and dark paper: safe for colour-blind eyes, alike in strength for alike numbers.

Blue and orange stay apart for all colour blindness; series also differ in dashes or shape, never by colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bertology.results.estimate import Floats

Theme = Literal["light", "dark"]
SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
STEPS = 9
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 1), (1, 3), (10, 4), (3, 5))


@dataclass(frozen=True, slots=True)
class Palette:
    """One paper: `above` and `below` start faint and grow stronger; `series` are told apart at a glance."""

    paper: str
    ink: str
    soft: str
    line: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    series: tuple[str, ...]
    ordered: tuple[float, float]  # the stretch of viridis that stands out from the paper

    @property
    def mark(self) -> str:
        """The colour of what was measured."""
        return self.series[0]

    def told_apart(self, count: int) -> list[str]:
        """So many colours, the first for what was measured; beyond the palette they come round again."""
        return [self.series[place % len(self.series)] for place in range(count)]

    def config(self) -> dict[str, Any]:
        """Vega-Lite's own settings for this paper."""
        words = {"labelColor": self.ink, "titleColor": self.ink, "labelFontSize": 11, "titleFontSize": 11}
        return {
            "background": self.paper,
            "padding": 16,
            "font": SANS,
            "view": {"stroke": None},
            "axis": {
                **words,
                "titleFontWeight": "normal",
                "gridColor": self.line,
                "domainColor": self.line,
                "tickColor": self.line,
            },
            "legend": {**words, "titleFontWeight": "normal", "symbolStrokeWidth": 2, "labelLimit": 320},
            "header": words,
            "title": {
                "color": self.ink,
                "subtitleColor": self.soft,
                "fontSize": 13,
                "subtitleFontSize": 11,
                "anchor": "start",
                "frame": "group",
            },
        }


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        paper="#ffffff",
        ink="#1b1f24",
        soft="#57606a",
        line="#dfe3e8",
        above=("#f3f3f1", "#b5d0e8", "#6ba3d3", "#2f74b5", "#12457c", "#082647"),
        below=("#f3f3f1", "#f6cf9f", "#e79a4c", "#bf6516", "#7f3d06", "#4a2202"),
        series=("#1f5fa8", "#c2570c", "#00806a", "#a3437f", "#6b6f76", "#8a6d00", "#3aa0d8", "#5b3fa0"),
        ordered=(0.0, 0.88),
    ),
    "dark": Palette(
        paper="#16181c",
        ink="#e8eaed",
        soft="#a2abb6",
        line="#343a42",
        above=("#2a2e34", "#29486a", "#2f6ca8", "#5598dc", "#93c3f5", "#d9ecff"),
        below=("#2a2e34", "#5f3d1a", "#96591a", "#cf8531", "#f2b266", "#ffe3bf"),
        series=("#7fb5f0", "#f2a154", "#45c4a7", "#e58fc4", "#b4bac2", "#e3c74b", "#4fd0e6", "#b39ddb"),
        ordered=(0.22, 1.0),
    ),
}


def dashes(count: int) -> list[list[int]]:
    """So many patterns of line, the first unbroken."""
    return [list(DASHES[place % len(DASHES)]) for place in range(count)]


@dataclass(frozen=True, slots=True)
class Colours:
    """A linear scale: equal differences of the number are equal steps of colour, on both sides of `middle`."""

    domain: tuple[float, ...]
    range: tuple[str, ...]
    middle: float
    reach: float

    def strength(self, value: float) -> float:
        """0 for the faint colour, 1 for the strongest: what to write on it depends on this."""
        return abs(value - self.middle) / self.reach


def colours_around(values: Floats, middle: float, palette: Palette) -> Colours:
    """A scale that is faint at `middle`, over the values there are."""
    known = values[np.isfinite(values)]
    low, high = (min(float(known.min()), middle), max(float(known.max()), middle)) if known.size else (middle, middle)
    reach = max(high - middle, middle - low)
    if reach == 0.0:
        low, high, reach = middle, middle + 1.0, 1.0
    below = np.linspace(low, middle, STEPS)[:-1] if low < middle else np.empty(0)
    above = np.linspace(middle, high, STEPS)[1:] if high > middle else np.empty(0)
    domain = [float(number) for number in (*below, middle, *above)]
    shades = [_shade(palette.below if n < middle else palette.above, abs(n - middle) / reach) for n in domain]
    return Colours(tuple(domain), tuple(shades), middle, reach)


def _shade(stops: tuple[str, ...], strength: float) -> str:
    place = min(strength, 1.0) * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    start, end = (np.array([int(stop[i : i + 2], 16) for i in (1, 3, 5)]) for stop in stops[first : first + 2])
    mixed = start + (end - start) * (place - first)
    return "#" + "".join(f"{round(float(part)):02x}" for part in mixed)
