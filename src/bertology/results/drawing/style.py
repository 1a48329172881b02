"""The style of drawings: classes for text, series, markers and the steps of the colour scale."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.results.palette import PALETTES, Theme, shade

COLOUR_STEPS = 16
"""Steps of the colour scale on either side of the baseline."""
SANS = "'Liberation Sans', Helvetica, Arial, sans-serif"
DASHES = ("", "6 3", "2 2", "8 3 2 3", "4 1", "1 3", "10 4", "3 5")
N_SERIES = 8
"""Colours of series: the first ones of the palette, which differ most."""
N_ORDERED = 6
"""Colours of groups that are too many to differ: an order from orange to blue."""


def figure_css(theme: Theme) -> str:
    """The rules for drawings in one theme, with plain colours: they also hold inside image files."""
    palette = PALETTES[theme]
    rules = [
        f"text {{ font: 11px {SANS}; fill: {palette.foreground}; }}",
        f".muted {{ fill: {palette.muted}; }}",
        ".title { font-size: 17px; font-weight: 600; } .name { font-size: 13px; font-weight: 600; }",
        ".small { font-size: 10px; } .tiny { font-size: 9px; } .quiet { pointer-events: none; }",
        ".word { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 13px; }",
        f".rule {{ stroke: {palette.grid}; fill: none; }}",
        f".background {{ fill: {palette.background}; }}",
        f".inverse {{ fill: {palette.background}; }}",
        f".outline {{ fill: none; stroke: {palette.muted}; stroke-width: .6; }}",
        ".line { fill: none; stroke: currentColor; stroke-width: 2; } .line.thin { stroke-width: 1.3; }",
        ".interval { fill: none; stroke: currentColor; stroke-width: 2; opacity: .6; }",
        ".interval.thin { stroke-width: 1; }",
        ".point { fill: currentColor; } .hollow { stroke: currentColor; stroke-width: 1.5; }",
        f".hollow {{ fill: {palette.background}; }}",
        ".band { fill: currentColor; opacity: .16; } .highlight { fill: currentColor; opacity: .3; }",
        f".series-all {{ color: {palette.foreground}; }}",
        f".arc-gold {{ color: {palette.gold_arc}; }} .arc-predicted {{ color: {palette.series[0]}; }}",
    ]
    rules += [f".s{index} {{ color: {palette.series_colour(index)}; }}" for index in range(N_SERIES)]
    ordered = (*(palette.below[step] for step in (4, 3, 2)), *(palette.above[step] for step in (2, 3, 4)))
    rules += [f".ordered{index} {{ color: {colour}; }}" for index, colour in enumerate(ordered)]
    for name, ramp in (("up", palette.above), ("down", palette.below)):
        rules += [
            f".{name}{step} {{ fill: {shade(ramp, step / (COLOUR_STEPS - 1))}; }}" for step in range(COLOUR_STEPS)
        ]
    return "\n".join(f".drawing {rule.replace('} .', '} .drawing .')}" for rule in rules)


def page_css(themes: Sequence[Theme] = ("light", "dark")) -> str:
    """The rules for drawings on a page: of one theme, or of both, by the reader's preference; paper is light."""
    first, *rest = (figure_css(theme) for theme in themes)
    return first + "".join(f"\n@media screen and (prefers-color-scheme: dark) {{\n{css}\n}}" for css in rest)


def series_class(index: int) -> str:
    """The class of a series: 0 is the model, baselines follow."""
    return f"s{index % N_SERIES}"


def dashes(index: int) -> str:
    """The dash pattern of a series; the model's line is solid."""
    return DASHES[index % len(DASHES)]
