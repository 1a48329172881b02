"""All colours of figures, reports and views, for light and dark backgrounds.

Any two colours of series differ by at least 8 (CIEDE2000) for normal, deuteranopic and protanopic sight; tests simulate
both. One colour each stands for untrained and published numbers, and grey for simple rules, everywhere. The front-end's
constants and style variables are generated from this file (see `bertology.views.typescript`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Theme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme; `above` and `below` are ramps from faint to strong, on either side of a baseline."""

    background: str
    foreground: str
    muted: str
    grid: str
    field: str
    """Background of buttons and code."""
    accent: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    series: tuple[str, ...]
    """Categorical colours, of heads and groups; the first is the model's. They differ under colour blindness too."""
    untrained: str
    """The same model with random weights."""
    published: str
    """Numbers of a paper."""
    baseline: str
    """Simple rules and chance."""
    gold_arc: str
    predicted_arc: str
    holds: str
    fails: str
    inconclusive: str

    def series_colour(self, index: int) -> str:
        """The colour of a series; colours repeat beyond the palette."""
        return self.series[index % len(self.series)]


_COLOURS: dict[str, tuple[Any, Any]] = {
    "background": ("#ffffff", "#16181c"),
    "foreground": ("#1b1f24", "#e8eaed"),
    "muted": ("#57606a", "#a2abb6"),
    "grid": ("#dfe3e8", "#343a42"),
    "field": ("#f4f5f7", "#22262b"),
    "accent": ("#1f5fa8", "#7fb5f0"),
    "above": (
        ("#f6f6f4", "#b5d0e8", "#6ba3d3", "#2f74b5", "#12457c", "#082647"),
        ("#22262b", "#29486a", "#2f6ca8", "#5598dc", "#93c3f5", "#d9ecff"),
    ),
    "below": (
        ("#f6f6f4", "#f6cf9f", "#e79a4c", "#bf6516", "#7f3d06", "#4a2202"),
        ("#22262b", "#5f3d1a", "#96591a", "#cf8531", "#f2b266", "#ffe3bf"),
    ),
    "series": (
        (
            "#1f5fa8", "#ed6e05", "#0a6450", "#c4195e", "#905b13", "#9744fa", "#5197ea", "#691f31",
            "#892603", "#12a879", "#bf7fa5", "#817e7e", "#1400c8", "#fc5266", "#83814b", "#5f4274",
        ),
        (
            "#7fb5f0", "#f8941e", "#01a87a", "#d92c8e", "#c3b36c", "#b534f2", "#0f829f", "#98f49a",
            "#f50424", "#eef116", "#dad5f8", "#fc7d94", "#5d822b", "#8e83d0", "#25b9c0", "#b5dbcd",
        ),
    ),
    "untrained": ("#b35900", "#f2a154"),
    "published": ("#8e1b5f", "#e58fc4"),
    "baseline": ("#6b7280", "#8d96a1"),
    "gold_arc": ("#8a5a00", "#e6b53c"),
    "predicted_arc": ("#a3437f", "#e58fc4"),
    "holds": ("#00695c", "#4fc3a8"),
    "fails": ("#b3261e", "#ff8a80"),
    "inconclusive": ("#7a5d00", "#e0bd4d"),
}  # fmt: skip
"""Each colour in light, then in dark."""
PALETTES: dict[Theme, Palette] = {
    "light": Palette(**{name: light for name, (light, _) in _COLOURS.items()}),
    "dark": Palette(**{name: dark for name, (_, dark) in _COLOURS.items()}),
}

CSS_COLOURS = (
    "background", "foreground", "muted", "grid", "field", "accent", "untrained", "published", "baseline", "holds",
    "fails", "inconclusive",
)  # fmt: skip


def css_variables(theme: Theme) -> str:
    """The colours of a theme as CSS custom properties: `--background`, `--foreground` and so on."""
    palette = PALETTES[theme]
    plain = [f"--{name}: {getattr(palette, name)};" for name in CSS_COLOURS]
    return " ".join([*plain, f"--ramp: linear-gradient(90deg, {', '.join(palette.above)});"])


def shade(ramp: tuple[str, ...], strength: float) -> str:
    """The colour of a ramp at a strength from 0 to 1."""
    position = min(max(strength, 0.0), 1.0) * (len(ramp) - 1)
    first = min(int(position), len(ramp) - 2)
    start, end = ([int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in ramp[first : first + 2])
    mixed = (round(a + (b - a) * (position - first)) for a, b in zip(start, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def relative_luminance(colour: str) -> float:
    """The relative luminance of a colour, 0 for black to 1 for white (WCAG 2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast_ratio(first: str, second: str) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2)."""
    dark, light = sorted((relative_luminance(first), relative_luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def readable_ink(background: str) -> str:
    """Black or white, whichever is easier to read on a colour; the contrast is at least 4.5."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast_ratio(ink, background))
