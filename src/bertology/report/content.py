"""What a report says, whatever it is written as: findings, the analyses behind them, and how they were made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertology.citations import CITATIONS
from bertology.claims.evidence import Evidence
from bertology.claims.examine import Finding
from bertology.claims.judge import tally
from bertology.results.result import Result

PARTS: dict[str, tuple[str, ...]] = {
    "What heads look at": ("attention/",),
    "Which heads know what": ("heads/",),
    "What layers know": ("probes/", "geometry/"),
    "What fine-tuning changed": ("attention/change", "geometry/similarity", "geometry/trajectory", "compare/"),
    "What happens when parts are taken away": ("causes/",),
    "When context is worth it": ("meaning/",),
}
"""The parts of a report, each with the analyses it is about: the longest beginning of a name decides."""


@dataclass(frozen=True)
class Section:
    """One analysis: its question, its documentation and its result."""

    question: str
    about: str
    result: Result

    @property
    def name(self) -> str:
        """What links to it: unlike other runs of the same analysis."""
        options = re.sub(r"[^a-z0-9]+", "-", str(sorted(self.result.options.items())).lower())
        return f"{self.result.analysis}{options}"

    @property
    def method(self) -> str:
        """The first two sentences of the documentation."""
        first = " ".join(self.about.split("\n\n")[0].split())
        return " ".join(re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", first)[:2])


@dataclass(frozen=True)
class Content:
    """All that a report says; `passes` are the passes over the corpora that all analyses shared.

    `seconds` are those that each pass and analysis took, if it was not there from before; `inside` are views of one
    text, as a fragment of a page (see `report.inside`); `evidence` are the texts behind findings, by their ids;
    `unjudged` are the ids of findings that nobody asked for.
    """

    title: str
    notices: Sequence[str]
    findings: Sequence[Finding]
    sections: Sequence[Section]
    passes: Sequence[str] = ()
    inside: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    evidence: Mapping[str, Evidence] = field(default_factory=dict[str, Evidence])
    unjudged: Sequence[str] = ()

    @property
    def summary(self) -> str:
        """How many findings there are, and how they came out."""
        return f"{len(self.findings)} published findings: {tally(one.verdict.outcome for one in self.findings)}."

    @property
    def parts(self) -> Iterable[tuple[str, list[Section]]]:
        """The parts that have a section, in order."""
        for part in PARTS:
            inside = [section for section in self.sections if part_of(section.result.analysis) == part]
            if inside:
                yield part, inside

    @property
    def papers(self) -> list[str]:
        """The papers that are cited, in full."""
        return [CITATIONS[paper] for paper in sorted({finding.claim.paper for finding in self.findings})]

    @property
    def skipped(self) -> dict[str, dict[str, Any]]:
        """For each model and corpus what was left out or cut, and how words and pieces went together."""
        told: dict[str, dict[str, Any]] = {}
        for section in self.sections:
            for recorded in section.result.inputs.values():
                if not isinstance(recorded, dict) or "counts" not in recorded:
                    continue
                corpus, counts = recorded["corpus"], recorded["counts"]
                told[f"{recorded['model']['name']} on {corpus['name']}"] = {**counts, **corpus["skipped"]}
        return told

    @property
    def longest(self) -> str:
        """What took longest, and how long it took, in a sentence; empty where all was there from before."""
        order = sorted(self.seconds.items(), key=lambda one: -one[1])
        told = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in order if seconds >= 1)
        return f"{sum(self.seconds.values()):.0f} seconds in all: {told or 'none longer than one'}." if order else ""

    def told_apart(self, section: Section) -> list[str]:
        """What a section was measured on, and what tells it from others of the same analysis."""
        result = section.result
        alike = [one.result for one in self.sections if one.result.analysis == result.analysis]
        named = [one["corpus"]["name"] for one in result.inputs.values() if isinstance(one, dict) and "corpus" in one]
        own = {k: v for k, v in result.options.items() if any(one.options.get(k) != v for one in alike)}
        return [*dict.fromkeys(named), *(f"{name.replace('_', ' ')}: {value}" for name, value in own.items())]

    def section_of(self, result: Result) -> Section | None:
        """The section that shows a result."""
        return next((section for section in self.sections if section.result is result), None)


def part_of(analysis: str) -> str:
    """The part of the report that an analysis belongs to; one of the user's own is about layers."""
    fitting = {prefix: part for part, prefixes in PARTS.items() for prefix in prefixes if analysis.startswith(prefix)}
    return fitting[max(fitting, key=len)] if fitting else "What layers know"
