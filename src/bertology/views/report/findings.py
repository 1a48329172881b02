"""The findings of a report as a reader meets them: a status with a sign and a word, a headline, and a rank.

The rules by which a page selects findings are here: which ones open the page, which differ from the literature, and
why others could not be judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bertology.claims.answer import write_short_answer
from bertology.claims.claim import TOPICS, Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.verdict import SPECIFIC, FewExamples
from bertology.views.report.strips import FindingStrip, finding_strip

Status = Literal["specific", "unspecific", "uncontrolled", "undecided", "fails", "not-tested"]


@dataclass(frozen=True)
class StatusText:
    """A status in words: beside a finding, in the tally (singular and plural), and its definition."""

    word: str
    tally: tuple[str, str]
    definition: str


STATUSES: dict[Status, StatusText] = {
    "specific": StatusText(
        "holds",
        ("holds and is specific to training", "hold and are specific to training"),
        "The 95 % interval satisfies the test of the finding, and the effect is clearly larger than in the same model "
        "without training, or than by another simpler explanation.",
    ),
    "unspecific": StatusText(
        "holds untrained too",
        ("holds without training too", "hold without training too"),
        "The interval satisfies the test, but so does the untrained model, or another simpler explanation: the finding "
        "says nothing about what was learnt.",
    ),
    "uncontrolled": StatusText(
        "holds, control open",
        ("holds, control open", "hold, control open"),
        "The interval satisfies the test; but no control applies, or the difference from it was not measured or may be "
        "zero.",
    ),
    "undecided": StatusText(
        "undecided",
        ("is undecided", "are undecided"),
        "The interval reaches to both sides of what the finding requires, or the examples are too few.",
    ),
    "fails": StatusText(
        "does not hold",
        ("does not hold", "do not hold"),
        "The whole interval lies on the other side of what the finding requires.",
    ),
    "not-tested": StatusText(
        "not tested",
        ("was not tested", "were not tested"),
        "The model or the corpus lacks something the finding needs, or it takes minutes and was left for --full.",
    ),
}
MAX_HEADLINES, MAX_OTHER_NUMBERS = 5, 3
MIN_DEVIATION = 0.15
"""A number is far from the published one if it differs by this part of the scale."""


@dataclass(frozen=True)
class Finding:
    """A claim with its result, or without one if it was not tested."""

    claim: Claim
    result: ClaimResult | None = None

    @property
    def status(self) -> Status:
        """What the verdict means for the finding."""
        if self.result is None:
            return "not-tested"
        verdict = self.result.verdict
        match verdict.outcome:
            case "holds":
                if verdict.specificity in SPECIFIC:
                    return "specific"
                return "unspecific" if verdict.specificity == "earned too" else "uncontrolled"
            case "fails":
                return "fails"
            case "inconclusive":
                return "undecided"
            case "not applicable":
                return "not-tested"

    @property
    def headline(self) -> str:
        """The finding, its denial if it does not hold, or a question if it is undecided."""
        outcome = "not applicable" if self.result is None else self.result.verdict.outcome
        return self.claim.headline_for(outcome)

    @property
    def answer(self) -> str:
        """What was measured, in a sentence."""
        return "Not tested: it takes minutes. Add --full." if self.result is None else self.result.answer

    @property
    def short_answer(self) -> str:
        """The answer without what a picture beside it shows."""
        return self.answer if self.result is None else write_short_answer(self.claim, self.result.verdict)

    @property
    def numbers(self) -> str:
        """The number here and the published one, in a sentence."""
        here = f"Here {self.strip.number} {self.strip.interval}. " if self.strip is not None else ""
        return f"{here}Published: {self.claim.published_value} ({self.claim.short_reference})."

    @cached_property
    def strip(self) -> FindingStrip | None:
        """The numbers on a line, if any were compared."""
        return None if self.result is None else finding_strip(self.result)

    @property
    def is_of_shares(self) -> bool:
        """Whether its number lies on the scale from 0 to 100 %, so that it can be compared with others."""
        return self.strip is not None and self.strip.is_of_shares

    @property
    def prominence(self) -> float:
        """How far the effect goes beyond what is required and beyond its controls, as a part of the scale."""
        if self.result is None or self.strip is None:
            return 0.0
        verdict = self.result.verdict
        effects = [comparison.effect.low - comparison.margin for comparison in verdict.comparisons]
        effects += [control.difference.low for control in verdict.controls if control.difference is not None]
        low, high = self.strip.axis
        return min(effects) / (high - low)

    @property
    def deviation(self) -> float:
        """How far the number lies from the published one, as a part of the scale; 0 if none is known."""
        return self.strip.deviation if self.strip is not None else 0.0


def findings_by_topic(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The findings by topic, in the order of the topics; those that were not tested stand last."""
    groups: dict[str, list[Finding]] = {topic: [] for topic in TOPICS}
    for finding in sorted(findings, key=lambda finding: finding.status == "not-tested"):
        groups[finding.claim.topic].append(finding)
    return {topic: group for topic, group in groups.items() if group}


def tally(findings: Sequence[Finding]) -> dict[Status, int]:
    """The number of findings of each status that occurs, in the order of the statuses."""
    counts = Counter[Status](finding.status for finding in findings)
    return {status: counts[status] for status in STATUSES if counts[status]}


_HEADLINE_RULE = (
    "Chosen by rule: of each topic the finding that is specific to training and goes farthest beyond what is required "
    "and beyond the untrained model, those on a scale from 0 to 100 % first; then the finding that differs most from "
    "the published one."
)


def headline_rule(findings: Sequence[Finding]) -> str:
    """The rule of `headline_findings`, in words."""
    if any(finding.status == "specific" for finding in findings):
        return _HEADLINE_RULE
    return f"No finding is known to be specific to training here; those that hold are shown. {_HEADLINE_RULE}"


def headline_findings(findings: Sequence[Finding]) -> tuple[list[Finding], Finding | None]:
    """The most prominent specific finding of each topic, the most prominent first, and the strongest deviation."""
    deviating = next(iter(surprising_findings(findings)), None)
    specific = [finding for finding in findings if finding.status == "specific"]
    held = specific or [finding for finding in findings if finding.status in ("unspecific", "uncontrolled")]
    ranked = sorted(held, key=lambda finding: (not finding.is_of_shares, -finding.prominence))
    first_of_topic: dict[str, Finding] = {}
    for finding in ranked:
        first_of_topic.setdefault(finding.claim.topic, finding)
    chosen = list(first_of_topic.values())[:MAX_HEADLINES]
    rest = [finding for finding in ranked if finding not in chosen]
    chosen += rest[: MAX_HEADLINES - len(chosen)]
    return chosen, deviating


def surprising_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that were published and do not hold here, the largest difference from the published number first."""
    return sorted((f for f in findings if f.status == "fails"), key=lambda finding: -finding.deviation)


def other_numbers(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that hold with a number far from the published one, the farthest first."""
    held = [f for f in findings if f.status in ("specific", "unspecific", "uncontrolled")]
    far = [finding for finding in held if finding.deviation >= MIN_DEVIATION]
    return sorted(far, key=lambda finding: -finding.deviation)[:MAX_OTHER_NUMBERS]


def unjudged_reasons(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Why findings could not be judged, with the findings."""
    reasons: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status in ("undecided", "not-tested"):
            reasons.setdefault(_reason(finding), []).append(finding)
    return reasons


def _reason(finding: Finding) -> str:
    """Why a finding could not be judged, in words that fit one finding and several."""
    if finding.result is None:
        return "left for --full: takes minutes"
    verdict = finding.result.verdict
    if verdict.outcome == "not applicable":
        return f"not tested without {verdict.lacking}" if verdict.lacking else "not tested: a presupposition fails"
    if any(isinstance(caveat, FewExamples) for caveat in verdict.caveats):
        return "with too few examples"
    if verdict.caveats:
        return "with a probe that still learns from more text"
    return "with an interval that reaches to both sides of what is required"
