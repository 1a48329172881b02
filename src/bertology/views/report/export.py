"""A report as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bertology.claims.claim import TOPICS
from bertology.claims.run import ClaimResult, ClaimResults
from bertology.results.html_table import format_value
from bertology.views.report.content import AnalysisSection, ReportContent

MAX_ROWS = 40


def as_json(content: ReportContent) -> str:
    """Everything: what `claims --json` has, and the complete result of every analysis."""
    results = content.claim_results
    report = {
        "title": content.title,
        "messages": list(content.messages),
        **(results.to_json() if isinstance(results, ClaimResults) else {}),
        "summary": content.summary,
        "forward_passes": [
            {"model": model, "corpus": corpus, "passes": n} for (model, corpus), n in Counter(content.passes).items()
        ],
        "seconds": dict(content.elapsed),
        "untested": list(content.not_run),
        "fine_tuning": content.finetuning.as_record() if content.finetuning is not None else None,
        "claims": [claim_result.as_record() for claim_result in results],
        "examples": {claim: asdict(texts) for claim, texts in content.example_texts.items()},
        "results": [section.result.to_json() for section in content.sections],
    }
    return json.dumps(report, ensure_ascii=False)


def as_markdown(content: ReportContent) -> str:
    """The claims, a table for each analysis, and the methods."""
    return "\n\n".join(_paragraphs(content)) + "\n"


def _paragraphs(content: ReportContent) -> Iterator[str]:
    yield f"# {content.title}"
    yield from content.messages
    if content.finetuning is not None:
        yield f"## What fine-tuning changed\n\n{content.finetuning.conclusions}"
        for heading, rows in content.finetuning.tables().items():
            yield f"### {heading}\n\n{_table(rows)}"
        yield from content.finetuning.notes
    yield f"## Claims\n\n{content.summary}"
    for topic in TOPICS:
        results = [result for result in content.claim_results if result.claim.topic == topic]
        if results:
            yield f"### {topic}"
            yield from map(_claim, results)
    for heading, sections in content.sections_by_heading:
        yield f"## {heading}"
        for section in sections:
            yield from _section(section)
    yield "## Methods"
    if content.passes_summary:
        yield content.passes_summary
    if content.timing_summary:
        yield content.timing_summary
    if content.input_counts:
        yield _table([{"input": name, **counts} for name, counts in content.input_counts.items()])
    yield "\n".join(f"- {reference}" for reference in content.references)


def _claim(claim_result: ClaimResult) -> str:
    """The headline with the verdict, the answer, and where the finding was published."""
    claim = claim_result.claim
    models = " and ".join(claim_result.models)
    place = f"{claim.short_reference}, {claim.section}"
    source = " · ".join(filter(None, [f"`{claim.id}`", models, place]))
    return f"**{claim_result.headline}** ({claim_result.verdict.label})  \n{claim_result.answer}  \n{source}"


def _section(section: AnalysisSection) -> Iterator[str]:
    result = section.result
    yield f"### {section.analysis.question}"
    facts = ", ".join(filter(None, (f"`{result.analysis}`", " and ".join(section.models), result.sample_size)))
    yield f"{facts}. {section.special_tokens} {section.method}"
    rows = result.rows()
    yield _table(rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        yield f"First {MAX_ROWS} of {len(rows)} rows; all rows are in the JSON."


def _table(records: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for record in records for column in record))
    cells = ([_cell(record.get(column, "")) for column in columns] for record in records)
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *cells])


def _cell(value: object) -> str:
    return format_value(value).replace("|", "\\|").replace("\n", " ")
