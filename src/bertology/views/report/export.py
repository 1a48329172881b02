"""A report as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertology.claims.claim_results import ClaimResults
from bertology.results.html_table import format_value
from bertology.views.report.content import AnalysisSection, ReportContent, lead_sentence
from bertology.views.report.findings import (
    STATUSES,
    Finding,
    findings_by_topic,
    headline_findings,
    surprising_findings,
    tally,
    unjudged_reasons,
)
from bertology.views.report.finetuning.sentences import conclusions, reading_notes
from bertology.views.report.finetuning.tables import changes_record, changes_tables
from bertology.views.report.next_steps import next_steps

MAX_ROWS = 40


def as_json(content: ReportContent) -> str:
    """Everything: what `claims --json` has, and the complete result of every analysis."""
    results = content.claim_results
    report = {
        "title": content.title,
        "messages": list(content.messages),
        **(results.to_json() if isinstance(results, ClaimResults) else {}),
        "summary": content.summary,
        "untested": [claim.id for claim in content.not_run],
        "fine_tuning": changes_record(content.finetuning) if content.finetuning is not None else None,
        "claims": [claim_result.as_record() for claim_result in results],
        "examples": {claim: texts.as_record() for claim, texts in content.example_texts.items()},
        "results": [section.result.to_json() for section in content.sections],
    }
    return json.dumps(report, ensure_ascii=False)


def as_markdown(content: ReportContent) -> str:
    """The headlines, the findings by topic, a table for each analysis, and the methods."""
    return "\n\n".join(_paragraphs(content)) + "\n"


def _paragraphs(content: ReportContent) -> Iterator[str]:
    findings = content.findings
    yield f"# {content.title}"
    yield lead_sentence(content)
    if findings:
        yield ", ".join(f"{n} {STATUSES[status].tally[n != 1]}" for status, n in tally(findings).items()) + "."
        yield from _overview(content)
    if content.finetuning is not None:
        yield f"## What fine-tuning changed\n\n{conclusions(content.finetuning)}"
        for heading, rows in changes_tables(content.finetuning).items():
            yield f"### {heading}\n\n{_table(rows)}"
        yield from reading_notes(content.finetuning)
    if findings:
        yield "## All findings"
        yield "\n".join(f"- **{text.word}**: {text.definition}" for text in STATUSES.values())
    for topic, group in findings_by_topic(findings).items():
        yield f"### {topic}"
        yield from map(_finding, group)
    for heading, sections in content.sections_by_heading:
        yield f"## {heading}"
        for section in sections:
            yield from _section(section)
    yield "## Methods"
    yield from content.messages
    if content.input_counts:
        yield _table([{"input": name, **counts} for name, counts in content.input_counts.items()])
    yield "\n".join(f"- {reference}" for reference in content.references)


def _overview(content: ReportContent) -> Iterator[str]:
    """Headlines, surprises, what could not be judged, and what to do next."""
    findings = content.findings
    headlines, deviating = headline_findings(findings)
    shown = [*headlines, *([deviating] if deviating is not None else [])]
    if shown:
        yield "## In short"
        yield "\n".join(f"- **{finding.headline}** {finding.short_answer}" for finding in shown)
    if surprises := surprising_findings(findings):
        yield "## What is surprising"
        yield "\n".join(f"- **{finding.headline}** {finding.numbers}" for finding in surprises)
    if reasons := unjudged_reasons(findings):
        yield "## What could not be judged"
        yield "\n".join(f"- {len(group)} {reason}" for reason, group in reasons.items())
    yield "## What to do next"
    yield "\n".join(f"- {step.text} `{step.command}`" for step in next_steps(content))


def _finding(finding: Finding) -> str:
    """The headline with the verdict, the answer, and where the finding was published."""
    claim = finding.claim
    source = f"`{claim.id}` · {claim.short_reference}, {claim.section}: {claim.published_value}"
    return f"**{finding.headline}** ({STATUSES[finding.status].word})  \n{finding.answer}  \n{source}"


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
