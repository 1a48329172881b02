"""All colours of figures, reports and views, for light and dark backgrounds.

Blue and orange remain distinct under all kinds of colour blindness; series also differ in dashes, marker or number. The
front-end's constants and style variables are generated from this file (see `bertology.views.typescript`).
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
    """Categorical colours; the first is the model's."""
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
            "#1f5fa8", "#c2570c", "#00806a", "#a3437f", "#6b6f76", "#8a6d00", "#3aa0d8", "#5b3fa0",
            "#b3261e", "#4c7a12", "#0f4c5c", "#d1568f", "#7a4a21", "#2e8b8b", "#94469e", "#444a52",
        ),
        (
            "#7fb5f0", "#f2a154", "#45c4a7", "#e58fc4", "#b4bac2", "#e3c74b", "#4fd0e6", "#b39ddb",
            "#ff8a80", "#a5d364", "#6fa8b8", "#f7a8c9", "#d0a27a", "#7fd6d6", "#d59be0", "#8f98a3",
        ),
    ),
    "gold_arc": ("#8a5a00", "#e6b53c"),
    "predicted_arc": ("#a3437f", "#e58fc4"),
    "holds": ("#00695c", "#4fc3a8"),
    "fails": ("#b3400e", "#ff9d66"),
    "inconclusive": ("#7a5d00", "#e0bd4d"),
}  # fmt: skip
"""Each colour in light, then in dark."""
PALETTES: dict[Theme, Palette] = {
    "light": Palette(**{name: light for name, (light, _) in _COLOURS.items()}),
    "dark": Palette(**{name: dark for name, (_, dark) in _COLOURS.items()}),
}

CSS_COLOURS = (
    "background", "foreground", "muted", "grid", "field", "accent", "holds", "fails", "inconclusive",
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
