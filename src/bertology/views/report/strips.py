"""The strip of a finding, as marks to draw and figures to read beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from bertology.claims.claim_results import ClaimResult
from bertology.claims.rounding import Unit, factor, format_constant, round_estimate
from bertology.claims.strip import Strip
from bertology.estimates.estimate import Estimate
from bertology.results.drawing.strip import SHARES, MarkKind, StripMark, draw_lanes, draw_strip

POSITIONS = ("head ", "layer ", "layers ", "embeddings")
"""How the name of a position begins; other names are rows, which the headline names."""
THIS_MODEL = "this model"


@dataclass(frozen=True)
class FindingStrip:
    """The marks of a finding on their axis, the estimate in figures, and the head or layers it was measured in."""

    marks: tuple[StripMark, ...]
    axis: tuple[float, float]
    unit: Unit
    number: str
    interval: str
    position: str
    n: int

    @property
    def is_of_shares(self) -> bool:
        """Whether it can be compared with the other strips from 0 to 100 %."""
        return self.axis == SHARES

    @property
    def description(self) -> str:
        """All numbers, a line each, and the sample size."""
        sample = [f"n = {self.n}"] if self.n else []
        return "\n".join([*(mark.description for mark in self.marks), *sample])

    def svg(self) -> Markup:
        """The strip; the ends of an axis other than 0 to 100 % are written below it."""
        ends = None if self.is_of_shares else (self._end(self.axis[0]), self._end(self.axis[1]))
        return draw_strip(self.marks, self.axis, self._label, ends=ends, has_tips=False)

    def lanes(self, width: float) -> Markup:
        """The same numbers below one another, with their names."""
        return draw_lanes(self.marks, self.axis, self._label, width=width)

    @property
    def _label(self) -> str:
        return self.description.replace("\n", "; ")

    def _end(self, end: float) -> str:
        """An end of the axis in its unit; what cannot be told from 0 on this axis is 0."""
        is_zero = abs(end) < 1e-3 * (self.axis[1] - self.axis[0])
        return "0" if is_zero else format_constant(float(f"{end:.3g}"), self.unit)

    @property
    def deviation(self) -> float:
        """How far the published value lies outside the interval of the estimate, as a part of the axis; 0 if none."""
        estimate = next((mark for mark in self.marks if mark.kind == "estimate"), None)
        published = next((mark for mark in self.marks if mark.kind == "published"), None)
        if estimate is None or published is None:
            return 0.0
        distance = max(published.low - estimate.high, estimate.low - published.high, 0.0)
        return distance / (self.axis[1] - self.axis[0])


def finding_strip(claim_result: ClaimResult) -> FindingStrip | None:
    """The strip of a verdict with what each mark says; None if nothing was measured."""
    strip = claim_result.strip
    if strip is None:
        return None
    shown = round_estimate(strip.measured.estimate, strip.unit)
    name = strip.measured.name
    position = name.removeprefix("head ").split(" of ")[0] if name.startswith(POSITIONS) else ""
    marks = tuple(_marks(strip, position))
    return FindingStrip(marks, strip.axis, strip.unit, shown.text, shown.interval, position, strip.measured.estimate.n)


def _marks(strip: Strip, position: str) -> Iterator[StripMark]:
    unit = strip.unit
    yield _mark("estimate", f"{THIS_MODEL}, {position}" if position else THIS_MODEL, strip.measured.estimate, unit)
    if strip.baseline is not None:
        yield _mark("baseline", strip.baseline.name, strip.baseline.estimate, unit)
    if strip.untrained is not None and math.isfinite(strip.untrained.value):
        yield _mark("untrained", "untrained", strip.untrained, unit)
    if strip.published is not None:
        low, high = strip.published if isinstance(strip.published, tuple) else (strip.published, strip.published)
        yield StripMark("published", (low + high) / 2, low, high, "published", _format_range(low, high, unit))
    if strip.required is not None:
        for end in strip.required if isinstance(strip.required, tuple) else (strip.required,):
            if math.isfinite(end):
                yield StripMark("required", end, end, end, "required", format_constant(float(f"{end:.3g}"), unit))


def _format_range(low: float, high: float, unit: Unit) -> str:
    if low == high:
        return format_constant(low, unit)
    return f"{low * factor(unit):g} to {format_constant(high, unit)}"


def _mark(kind: MarkKind, name: str, estimate: Estimate, unit: Unit) -> StripMark:
    shown = round_estimate(estimate, unit)
    return StripMark.of(kind, estimate, name, f"{shown.text} {shown.interval}".rstrip())
