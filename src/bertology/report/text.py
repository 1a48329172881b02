"""A report for papers and scripts: as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from bertology.citations import CITATIONS
from bertology.claims.examine import Finding
from bertology.report.content import Content, Section

ROWS = 40


def as_json(content: Content) -> str:
    """Everything: each finding with its verdict, and the whole result of every analysis."""
    told = {
        "title": content.title,
        "notices": list(content.notices),
        "summary": content.summary,
        "passes": list(content.passes),
        "seconds": dict(content.seconds),
        "unjudged": list(content.unjudged),
        "findings": [as_record(finding) for finding in content.findings],
        "evidence": {name: asdict(found) for name, found in content.evidence.items()},
        "results": [section.result.to_json() for section in content.sections],
    }
    return json.dumps(told, ensure_ascii=False)


def as_record(finding: Finding) -> dict[str, Any]:
    """One finding as plain values."""
    claim = finding.claim
    return {
        "id": claim.id,
        "finding": claim.finding,
        "paper": claim.paper,
        "place": claim.place,
        "published": claim.published,
        "analyses": [run.analysis for run in claim.measured_by.values()],
        "verdict": finding.verdict.outcome,
        "why": finding.verdict.why,
    }


def as_markdown(content: Content) -> str:
    """The scoreboard, a table for each analysis, and how it was made."""
    return "\n\n".join(_paragraphs(content)) + "\n"


def _paragraphs(content: Content) -> Iterable[str]:
    yield f"# {content.title}"
    yield from content.notices
    yield f"## What holds\n\n{content.summary}"
    yield _table([_row(finding) for finding in content.findings])
    for part, sections in content.parts:
        yield f"## {part}"
        for section in sections:
            yield from _section(section)
    yield "## Methods"
    if content.passes:
        yield f"{len(content.passes)} passes over the texts: {'; '.join(content.passes)}."
    if content.longest:
        yield content.longest
    if content.skipped:
        yield _table([{"": name, **counts} for name, counts in content.skipped.items()])
    yield "\n".join(f"- {paper}" for paper in content.papers)


def _row(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    source = f"{CITATIONS[claim.paper].split(').')[0]}), {claim.place}: {claim.published}"
    return {"verdict": finding.verdict.outcome, "finding": claim.finding, "here": finding.verdict.why, "there": source}


def _section(section: Section) -> Iterable[str]:
    result = section.result
    yield f"### {section.question}"
    special = result.provenance["special_tokens"]
    yield f"`{result.analysis}`, {result.rests_on}; special tokens: {special}. {section.method}"
    rows = result.rows()
    yield _table(rows[:ROWS])
    if len(rows) > ROWS:
        yield f"The first {ROWS} of {len(rows)} rows; the JSON has all."


def _table(rows: list[dict[str, Any]] | list[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, ["---"] * len(columns), *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
