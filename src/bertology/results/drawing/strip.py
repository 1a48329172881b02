"""A strip: one number with its interval on a line, beside what it is compared with.

The marks are the same wherever a strip is drawn: a dot with its interval is the estimate, a grey bar the best simple
rule, a triangle the untrained model, a diamond the published value, and a dotted line what is required.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from bertology.estimates.estimate import Estimate
from bertology.results.drawing import svg
from bertology.results.palette import Palette

Scale = Callable[[float], float]
MarkKind = Literal["required", "baseline", "untrained", "published", "estimate"]
MARK_NAMES: dict[MarkKind, str] = {
    "estimate": "this model, with its interval",
    "baseline": "best simple rule",
    "untrained": "the same model untrained",
    "published": "published value",
    "required": "what the finding requires",
}
"""The kinds of marks in the words of a legend."""
DRAWING_ORDER: tuple[MarkKind, ...] = ("required", "baseline", "untrained", "published", "estimate")
WIDTH, HEIGHT, MARGIN, AXIS_HEIGHT = 300, 26, 9, 14
LANE = 22
MAX_NAME_LENGTH, MAX_LANE_NAME_LENGTH, MAX_TEXT_LENGTH = 26, 34, 24
SHARES = (0.0, 1.0)
"""The scale of shares: all strips of shares can be compared."""


@dataclass(frozen=True, slots=True)
class StripMark:
    """A number on a strip, what it is of, and the number as text.

    `low` and `high` are the ends of its interval or range, or equal to it.
    """

    kind: MarkKind
    value: float
    low: float
    high: float
    name: str
    text: str

    @classmethod
    def of(cls, kind: MarkKind, estimate: Estimate, name: str, text: str) -> StripMark:
        """The mark of an estimate."""
        low, high = (estimate.low, estimate.high) if svg.has_interval(estimate) else (estimate.value, estimate.value)
        return cls(kind, estimate.value, low, high, name, text)

    @property
    def description(self) -> str:
        """The name and the number, for tooltips."""
        return f"{self.name}: {self.text}"


def strip_scale(marks: Sequence[StripMark]) -> tuple[float, float]:
    """From 0 to 1 if all numbers lie there, else over all numbers, with 0 if it is near."""
    ends = [end for mark in marks for end in (mark.low, mark.value, mark.high) if math.isfinite(end)]
    if not ends:
        return SHARES
    low, high = min(ends), max(ends)
    low, high = min(low, 0.0) if low < 0.4 * high else low, max(high, 0.0)
    pad = 0.04 * (high - low)
    return (low - pad if low else low, high + pad if high else high) if high > low else (low - 0.5, high + 0.5)


def draw_strip(
    marks: Sequence[StripMark],
    scale: tuple[float, float],
    label: str,
    *,
    width: float = WIDTH,
    ends: tuple[str, str] | None = None,
    is_part: bool = False,
    has_tips: bool = True,
) -> Markup:
    """The marks on a line, with the `ends` of the scale below if they are given.

    A part belongs to a larger image. Marks have no tooltips if the whole strip has one.
    """
    low, high = scale
    x = _scale_to(scale, 0.0, width)
    middle = HEIGHT / 2
    parts: list[Markup] = [svg.path([(MARGIN, middle), (width - MARGIN, middle)], class_="rule")]
    if low < 0 < high:
        parts.append(svg.path([(x(0), middle - 4), (x(0), middle + 4)], class_="rule"))
    for kind in DRAWING_ORDER:
        for mark in (mark for mark in marks if mark.kind == kind and math.isfinite(mark.value)):
            parts += draw_mark(mark if has_tips else replace(mark, name=""), x, middle)
    height = HEIGHT
    if ends is not None:
        height += AXIS_HEIGHT
        parts.append(svg.text(x(low), HEIGHT + 8, ends[0], class_="muted small"))
        parts.append(svg.text(x(high), HEIGHT + 8, ends[1], anchor="end", class_="muted small"))
    return svg.group(parts) if is_part else svg.document(width, height, Markup().join(parts), label)


def draw_lanes(marks: Sequence[StripMark], scale: tuple[float, float], label: str, *, width: float = WIDTH) -> Markup:
    """The same marks each on a line of its own, between its name and its number."""
    lanes = [mark for mark in marks if math.isfinite(mark.value)]
    names = [svg.truncate_label(mark.name, MAX_NAME_LENGTH) for mark in lanes]
    texts = [svg.truncate_label(mark.text, MAX_TEXT_LENGTH) for mark in lanes]
    left = max(map(svg.text_width, names), default=0.0)
    right = width - max(map(svg.text_width, texts), default=0.0)
    x = _scale_to(scale, left, right)
    parts: list[Markup] = []
    for position, (mark, name, text) in enumerate(zip(lanes, names, texts, strict=True)):
        y = (position + 0.5) * LANE
        parts.append(svg.path([(x(scale[0]), y), (x(scale[1]), y)], class_="rule"))
        parts.append(svg.text(left, y + 4, name, anchor="end", tip=mark.name if name != mark.name else ""))
        parts.append(svg.text(right, y + 4, text, class_="muted", tip=mark.text if text != mark.text else ""))
        parts += draw_mark(mark, x, y)
    return svg.document(width, len(lanes) * LANE, Markup().join(parts), label)


@dataclass(frozen=True, slots=True)
class ForestLane:
    """A line of a forest plot: whose numbers they are, the estimate as text, and the status as a style class."""

    name: str
    marks: Sequence[StripMark]
    text: str
    class_: str = ""


def draw_forest(
    lanes: Sequence[ForestLane],
    scale: tuple[float, float],
    label: str,
    *,
    width: float,
    ends: tuple[str, str],
    bands: Sequence[tuple[float, float, int, int]] = (),
) -> Markup:
    """Several estimates on one scale, each on a line between its name and its number, beside what it is compared with.

    `bands` are shaded ranges from one number to another, over the lanes from a first to a last one.
    """
    names = [svg.truncate_middle(lane.name, MAX_LANE_NAME_LENGTH) for lane in lanes]
    left = max(map(svg.text_width, names), default=0.0)
    right = width - max((svg.text_width(lane.text) for lane in lanes), default=0.0)
    x = _scale_to(scale, left, right)
    parts: list[Markup] = []
    for low, high, first, last in bands:
        size = max(2.0, x(high) - x(low)), (last - first + 1) * LANE - 4
        corner = {"x": x(low), "y": first * LANE + 2, "width": size[0], "height": size[1]}
        parts.append(svg.element("rect", class_="band", tip="range over seeds", **corner))
    for position, (lane, name) in enumerate(zip(lanes, names, strict=True)):
        y = (position + 0.5) * LANE
        marks = [mark for kind in DRAWING_ORDER for mark in lane.marks if mark.kind == kind]
        line = [svg.path([(x(scale[0]), y), (x(scale[1]), y)], class_="rule")]
        line += [part for mark in marks if math.isfinite(mark.value) for part in draw_mark(mark, x, y)]
        parts.append(svg.text(left, y + 4, name, anchor="end", tip=lane.name if name != lane.name else ""))
        parts.append(svg.text(right, y + 4, lane.text, class_="muted"))
        parts.append(svg.group(line, class_=lane.class_))
    bottom = len(lanes) * LANE
    parts.append(svg.text(x(scale[0]), bottom + 10, ends[0], class_="muted small"))
    parts.append(svg.text(x(scale[1]), bottom + 10, ends[1], anchor="end", class_="muted small"))
    return svg.document(width, bottom + AXIS_HEIGHT, Markup().join(parts), label)


def _scale_to(scale: tuple[float, float], left: float, right: float) -> Scale:
    low, high = scale

    def x(value: float) -> float:
        share = (value - low) / (high - low)
        return left + MARGIN + (right - left - 2 * MARGIN) * min(1.0, max(0.0, share))

    return x


def draw_mark(mark: StripMark, x: Scale, y: float) -> Iterator[Markup]:
    """The sign of one mark, with its description as tooltip."""
    at, tip = x(mark.value), mark.description if mark.name else ""
    match mark.kind:
        case "required":
            yield svg.path([(at, y - 11), (at, y + 11)], class_="required", tip=tip)
        case "baseline":
            yield svg.element("rect", x=at - 1.5, y=y - 7, width=3, height=14, class_="mark-baseline", tip=tip)
        case "untrained":
            corners = f"{at:.1f},{y - 5:.1f} {at + 5:.1f},{y + 4.5:.1f} {at - 5:.1f},{y + 4.5:.1f}"
            yield svg.element("polygon", points=corners, class_="mark-untrained", tip=tip)
        case "published":
            if x(mark.high) - x(mark.low) > 2:
                yield svg.path([(x(mark.low), y), (x(mark.high), y)], class_="range-published", tip=tip)
            corners = f"{at:.1f},{y - 6:.1f} {at + 6:.1f},{y:.1f} {at:.1f},{y + 6:.1f} {at - 6:.1f},{y:.1f}"
            yield svg.element("polygon", points=corners, class_="mark-published", tip=tip)
        case "estimate":
            if x(mark.high) > x(mark.low):
                yield svg.path([(x(mark.low), y), (x(mark.high), y)], class_="range-estimate", tip=tip)
            yield svg.element("circle", cx=at, cy=y, r=4.5, class_="mark-estimate", tip=tip)


def draw_sign(kind: MarkKind) -> Markup:
    """The sign of a kind of mark, for a legend."""
    width = 24 if kind == "estimate" else 14
    half = 9.0 if kind == "estimate" else 0.0
    mark = StripMark(kind, 0.0, -half, half, "", "")
    body = Markup().join(draw_mark(mark, lambda value: width / 2 + value, 8))
    return svg.element("svg", body, class_="drawing sign", viewBox=f"0 0 {width} 16", width=width, aria_hidden="true")


def strip_rules(palette: Palette) -> list[str]:
    """The style of the marks in one theme, with plain colours."""
    hollow = f"fill: {palette.background}; stroke-width: 1.5;"
    return [
        f".mark-estimate {{ fill: {palette.accent}; }}",
        f".range-estimate {{ stroke: {palette.accent}; stroke-width: 4; opacity: .4; fill: none; }}",
        f".mark-baseline {{ fill: {palette.baseline}; }}",
        f".mark-untrained {{ {hollow} stroke: {palette.untrained}; }}",
        f".mark-published {{ {hollow} stroke: {palette.published}; }}",
        f".range-published {{ stroke: {palette.published}; stroke-width: 1.5; opacity: .6; fill: none; }}",
        f".required {{ stroke: {palette.muted}; stroke-width: 1.3; stroke-dasharray: 1.5 2.5; fill: none; }}",
    ]
