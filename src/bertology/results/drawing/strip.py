"""A strip: one number with its interval on a line, beside what it is compared with.

The marks are the same wherever a strip is drawn: a dot with its interval is the estimate, a grey bar the best simple
rule, a triangle the untrained model, a diamond the published value, and a dotted line what is required.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from bertology.estimates.estimate import Estimate
from bertology.results.drawing import svg

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
SHARES = (0.0, 1.0)
"""The scale of shares: all strips of shares can be compared."""


@dataclass(frozen=True, slots=True)
class StripMark:
    """A number on a strip; `low` and `high` are the ends of its interval or range, or equal to it."""

    kind: MarkKind
    value: float
    low: float
    high: float
    description: str

    @classmethod
    def of(cls, kind: MarkKind, estimate: Estimate, description: str) -> StripMark:
        """The mark of an estimate."""
        low, high = (estimate.low, estimate.high) if svg.has_interval(estimate) else (estimate.value, estimate.value)
        return cls(kind, estimate.value, low, high, description)


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
    axis: bool = False,
    is_part: bool = False,
) -> Markup:
    """The marks on a line; with `axis` the ends of the scale are written below. A part belongs to a larger image."""
    low, high = scale

    def x(value: float) -> float:
        share = (value - low) / (high - low)
        return MARGIN + (width - 2 * MARGIN) * min(1.0, max(0.0, share))

    middle = HEIGHT / 2
    parts: list[Markup] = [svg.path([(MARGIN, middle), (width - MARGIN, middle)], class_="rule")]
    if low < 0 < high:
        parts.append(svg.path([(x(0), middle - 4), (x(0), middle + 4)], class_="rule"))
    for kind in DRAWING_ORDER:
        for mark in (mark for mark in marks if mark.kind == kind and math.isfinite(mark.value)):
            parts += draw_mark(mark, x, middle)
    height = HEIGHT
    if axis:
        height += AXIS_HEIGHT
        ends = ((low, "start"), (high, "end"))
        parts += [
            svg.text(x(end), HEIGHT + 8, f"{end:.3g}", anchor=anchor, class_="muted small")
            for end, anchor in ends
        ]
    return svg.group(parts) if is_part else svg.document(width, height, Markup().join(parts), label)


def draw_mark(mark: StripMark, x: Scale, y: float) -> Iterator[Markup]:
    """The sign of one mark, with its description as tooltip."""
    at, tip = x(mark.value), mark.description
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
    mark = StripMark(kind, 0.0, -half, half, "")
    body = Markup().join(draw_mark(mark, lambda value: width / 2 + value, 8))
    return svg.element("svg", body, class_="drawing sign", viewBox=f"0 0 {width} 16", width=width, aria_hidden="true")
