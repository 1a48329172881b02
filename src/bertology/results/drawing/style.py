"""The style of drawings: classes for text, series, markers and the steps of the colour scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertology.results.drawing.strip import strip_rules
from bertology.results.palette import PALETTES, Theme, readable_ink, shade

COLOUR_STEPS = 16
"""Steps of the colour scale on either side of the baseline."""
STRONGEST = 0.85
"""Where the colour scale ends on the ramps of the palette."""
SANS = "'Liberation Sans', Helvetica, Arial, sans-serif"
DASHES = ("4 2", "1.5 1.5", "7 2 1.5 2", "7 3", "3 1", "1 3", "10 3", "3 4")
"""Dash patterns of baselines that are simple rules; lines of models are solid."""
N_SERIES = 8
"""Colours of groups: the first ones of the palette."""
N_ORDERED = 8
"""Steps of the ramp for groups that have an order, such as layers."""
RULE_MARKERS = ("bar", "square", "cross", "diamond", "plus", "ring")


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """How a baseline is drawn: the class of its colour, its dash pattern and its marker."""

    class_: str
    dash: str
    marker: str


def series_styles(baselines: Iterable[str]) -> dict[str, SeriesStyle]:
    """The style of each baseline: one colour each for untrained and published, grey for simple rules.

    Simple rules differ in dashes and markers.
    """
    styles: dict[str, SeriesStyle] = {}
    n_rules = 0
    for name in baselines:
        if name.startswith("untrained"):
            styles[name] = SeriesStyle("untrained", "", "triangle")
        elif name.startswith("published"):
            styles[name] = SeriesStyle("published", "", "diamond")
        else:
            marker = RULE_MARKERS[n_rules % len(RULE_MARKERS)]
            styles[name] = SeriesStyle("rule-baseline", DASHES[n_rules % len(DASHES)], marker)
            n_rules += 1
    return styles


def figure_css(theme: Theme) -> str:
    """The rules for drawings in one theme, with plain colours: they also hold inside image files."""
    palette = PALETTES[theme]
    rules = [
        f"text {{ font: 11px {SANS}; fill: {palette.foreground}; }}",
        f".muted {{ fill: {palette.muted}; }}",
        ".title { font-size: 12px; font-weight: 600; } .name { font-size: 11.5px; font-weight: 600; }",
        ".strong { font-weight: 600; } .small { font-size: 10px; } .quiet { pointer-events: none; }",
        f".rule {{ stroke: {palette.grid}; fill: none; stroke-width: .8; }}",
        f".axis {{ stroke: {palette.muted}; fill: none; stroke-width: .8; }}",
        f".background {{ fill: {palette.background}; }}",
        f".halo {{ stroke: {palette.background}; stroke-width: 2.5; paint-order: stroke; stroke-linejoin: round; }}",
        f".outline {{ fill: none; stroke: {palette.muted}; stroke-width: .6; }}",
        f".best {{ fill: none; stroke: {palette.foreground}; stroke-width: 1.5; }}",
        ".line { fill: none; stroke: currentColor; stroke-width: 1.8; } .line.thin { stroke-width: 1.2; }",
        ".interval { fill: none; stroke: currentColor; stroke-width: 2; opacity: .55; }",
        ".interval.thin { stroke-width: 1; }",
        ".point { fill: currentColor; } .hollow { stroke: currentColor; stroke-width: 1.3; }",
        f".hollow {{ fill: {palette.background}; }}",
        ".band { fill: currentColor; opacity: .16; } .baseline .band { opacity: .08; }",
        ".highlight { fill: currentColor; opacity: .22; }",
        f".series-all {{ color: {palette.foreground}; }}",
        f".untrained {{ color: {palette.untrained}; }} .published {{ color: {palette.published}; }}",
        f".rule-baseline {{ color: {palette.baseline}; }}",
        f".arc-gold {{ color: {palette.gold_arc}; }} .arc-agrees {{ color: {palette.series[0]}; }}",
    ]
    rules += strip_rules(palette)
    rules += [f".s{index} {{ color: {palette.series_colour(index)}; }}" for index in range(N_SERIES)]
    ordered = [shade(palette.above[1:], (step + 1) / N_ORDERED) for step in range(N_ORDERED)]
    rules += [f".ordered{index} {{ color: {colour}; }}" for index, colour in enumerate(ordered)]
    for name, ramp in (("up", palette.above), ("down", palette.below)):
        for step in range(COLOUR_STEPS):
            colour = shade(ramp, STRONGEST * step / (COLOUR_STEPS - 1))
            rules.append(f".{name}{step} {{ fill: {colour}; }} .on-{name}{step} {{ fill: {readable_ink(colour)}; }}")
    return "\n".join(f".drawing {rule.replace('} .', '} .drawing .')}" for rule in rules)


def page_css(themes: Sequence[Theme] = ("light", "dark")) -> str:
    """The rules for drawings on a page: of one theme, or of both, by the reader's preference; paper is light."""
    first, *rest = (figure_css(theme) for theme in themes)
    return first + "".join(f"\n@media screen and (prefers-color-scheme: dark) {{\n{css}\n}}" for css in rest)


def series_class(index: int) -> str:
    """The class of a group's colour; 0 is also the model's."""
    return f"s{index % N_SERIES}"
