"""Contents of reports for the tests: declared analyses without a function, and claims with verdicts."""

from __future__ import annotations

from typing import Any

from bertology.analyses.declaration import Analysis, analysis
from bertology.claims.claim import all_claims
from bertology.results.result import Result
from bertology.results.shapes import Shape
from bertology.views.report.content import AnalysisSection, ReportContent

CLAIM = next(claim for claim in all_claims() if claim.paper == "clark2019")


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
    values: dict[str, Any] = {"title": "title", "messages": [], "claim_results": [], "sections": list(sections)}
    return ReportContent(**(values | fields))
