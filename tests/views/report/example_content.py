"""Contents of reports for the tests: declared analyses without a function, and claims with verdicts."""

from __future__ import annotations

from typing import Any

from bertology.analyses.declaration import Analysis, analysis
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.verdict import Comparison, ControlVerdict, Measurement, Outcome, Specificity, Verdict
from bertology.estimates.estimate import Estimate
from bertology.results.result import Result
from bertology.results.shapes import Head, Shape
from bertology.views.report.content import AnalysisSection, ReportContent, ReportSubject

CLAIM = next(claim for claim in all_claims() if claim.paper == "clark2019")
SUBJECT = ReportSubject("mini", "english.conllu", n_layers=8, n_heads=8, n_examples=356)
HEAD = Head(2, 1)


def make_analysis(
    description: str = "First sentence. Second sentence. Third sentence.", name: str = "group/name", **fields: Any
) -> Analysis:
    """An analysis with a description."""

    def function(corpus: Any) -> Shape:
        raise NotImplementedError

    function.__doc__ = description
    return analysis(question="What?", special_tokens="", citations=(), name=name, **fields)(function)


def section(result: Result, description: str = "First sentence. Second sentence. Third sentence.") -> AnalysisSection:
    """A section of a report for a result."""
    return AnalysisSection(make_analysis(description), result)


def content(*sections: AnalysisSection, **fields: Any) -> ReportContent:
    """A report with these sections; without claims by default."""
    values: dict[str, Any] = {"subject": SUBJECT, "messages": [], "claim_results": [], "sections": list(sections)}
    return ReportContent(**(values | fields))


def estimate(value: float, width: float = 0.02, n: int = 50) -> Estimate:
    """An estimate with an interval of twice the width."""
    return Estimate(value, value - width, value + width, n)


def measured(
    claim: Claim = CLAIM,
    value: float = 0.8,
    *,
    baseline: float = 0.4,
    untrained: float = 0.1,
    specificity: Specificity | None = "specific",
    results: tuple[Result, ...] = (),
    **fields: Any,
) -> ClaimResult:
    """A claim with a number of head 3-2 beside a baseline; the untrained model is its control if it holds."""
    number = Measurement("attention", estimate(value), head=HEAD)
    lower = Measurement("attention", estimate(baseline), baseline="uniform attention", head=HEAD)
    comparison = Comparison(number, lower)
    control = Measurement("attention", estimate(untrained), head=HEAD)
    outcome: Outcome = comparison.outcome
    controls: tuple[ControlVerdict, ...] = ()
    if specificity is not None and outcome == "holds":
        controls = (ControlVerdict("untrained model", specificity, (Comparison(control, lower),), estimate(0.5)),)
    verdict = Verdict(
        outcome,
        (comparison,),
        controls=controls,
        untrained=(Comparison(control, lower),),
    )
    fields = {"update": fields} if fields else {}
    return ClaimResult(claim.model_copy(**fields), verdict, results, ("mini",))
