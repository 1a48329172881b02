"""The strip of a finding: its number beside the best simple rule, the untrained model and the published value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bertology.claims.claim import UNTRAINED
from bertology.claims.run import ClaimResult
from bertology.claims.verdict import Measurement
from bertology.estimates.estimate import Estimate
from bertology.results.drawing import svg
from bertology.results.drawing.strip import SHARES, StripMark, draw_strip, strip_scale


@dataclass(frozen=True)
class FindingStrip:
    """The marks of a finding on their scale, the estimate in figures and where it was measured."""

    marks: tuple[StripMark, ...]
    scale: tuple[float, float]
    number: str
    interval: str
    place: str

    @property
    def is_of_shares(self) -> bool:
        """Whether it can be compared with the other strips from 0 to 1."""
        return self.scale == SHARES

    @property
    def description(self) -> str:
        """All numbers, a line each."""
        return "\n".join(mark.description for mark in self.marks)

    def svg(self) -> Markup:
        """The strip; scales other than 0 to 1 are written below it."""
        return draw_strip(self.marks, self.scale, self.description.replace("\n", "; "), axis=not self.is_of_shares)

    def mark(self, kind: str) -> StripMark | None:
        """The first mark of a kind."""
        return next((mark for mark in self.marks if mark.kind == kind), None)

    @property
    def deviation(self) -> float:
        """How far the published value lies outside the interval of the estimate, as a part of the scale."""
        estimate, published = self.mark("estimate"), self.mark("published")
        if estimate is None or published is None:
            return 0.0
        distance = max(published.low - estimate.high, estimate.low - published.high, 0.0)
        return distance / (self.scale[1] - self.scale[0])


def finding_strip(claim_result: ClaimResult) -> FindingStrip | None:
    """The strip of the first comparison of a verdict; None if nothing was compared."""
    verdict, claim = claim_result.verdict, claim_result.claim
    if not verdict.comparisons or not math.isfinite(verdict.comparisons[0].value.estimate.value):
        return None
    comparison = verdict.comparisons[0]
    value, lower = comparison.value, comparison.lower
    marks = [StripMark.of("estimate", value.estimate, f"this model: {svg.format_estimate(value.estimate)}")]
    if isinstance(lower, Measurement):
        kind = "untrained" if lower.baseline == UNTRAINED.name else "baseline"
        marks.append(StripMark.of(kind, lower.estimate, f"{lower.baseline or lower.name}: {svg.format_estimate(lower.estimate)}"))
        required = lower.estimate.value + comparison.margin if comparison.margin else math.nan
    else:
        required = lower + comparison.margin
    for control in verdict.controls:
        if control.comparisons and control.name == UNTRAINED.name:
            number = control.comparisons[0].value.estimate
            marks.append(StripMark.of("untrained", number, f"{control.name}: {svg.format_estimate(number)}"))
    if claim.published is not None:
        low, high = claim.published if isinstance(claim.published, tuple) else (claim.published, claim.published)
        marks.append(StripMark("published", (low + high) / 2, low, high, f"published: {claim.published_value}"))
    if math.isfinite(required):
        marks.append(StripMark("required", required, required, required, f"required: {comparison.requirement}"))
    within = all(0 <= end <= 1 for mark in marks for end in (mark.low, mark.high))
    scale = SHARES if within else strip_scale(marks)
    number, interval = _figures(value.estimate, is_share=within)
    return FindingStrip(tuple(marks), scale, number, interval, _place(value))


def _figures(estimate: Estimate, *, is_share: bool) -> tuple[str, str]:
    has_interval = svg.has_interval(estimate)
    if is_share:
        return f"{estimate.value * 100:.0f} %", f"[{estimate.low * 100:.0f}, {estimate.high * 100:.0f}]" if has_interval else ""
    return f"{estimate.value:.3g}", f"[{estimate.low:.3g}, {estimate.high:.3g}]" if has_interval else ""


def _place(value: Measurement) -> str:
    """The head or the layers of a number."""
    if value.head is not None:
        return str(value.head)
    if value.layers is None:
        return ""
    first, last = value.layers
    if last == 0:
        return "embeddings"
    return f"layer {last}" if first == last else f"layers {first}-{last}"
