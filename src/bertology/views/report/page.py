"""A report as a self-contained HTML page, for light and dark, narrow and wide screens, and paper."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from bertology.claims.claim import tested_measures, tested_rows
from bertology.claims.example_texts import ExampleTexts
from bertology.claims.run import ClaimResult
from bertology.claims.verdict import SPECIFIC
from bertology.html import render
from bertology.results.drawing.style import page_css
from bertology.results.html_table import html_table
from bertology.results.palette import css_variables
from bertology.views.report.content import AnalysisSection, ReportContent
from bertology.views.report.results import render_result

MAX_TEXT_LENGTH = 300
"""Example sentences are cut to this many characters."""


def report_page(content: ReportContent) -> str:
    """The claims with their verdicts, a part for each group of analyses, methods and references."""
    return render(
        "report.html",
        content=content,
        light=css_variables("light"),
        dark=css_variables("dark"),
        figure_css=Markup(page_css()),
        attention_view=Markup(content.attention_view),
        finetuning_tables={name: html_table(rows) for name, rows in content.finetuning.tables().items()}
        if content.finetuning is not None
        else {},
        claims=[_claim(claim_result, content) for claim_result in content.claim_results],
        parts=[
            (heading, [_section(section, content) for section in sections])
            for heading, sections in content.sections_by_heading
        ],
        input_table=html_table([{"input": name, **counts} for name, counts in content.input_counts.items()]),
        methods=[_method(section) for section in content.sections],
    )


def _claim(claim_result: ClaimResult, content: ReportContent) -> dict[str, Any]:
    claim, verdict = claim_result.claim, claim_result.verdict
    results: list[dict[str, Any]] = []
    for result in claim_result.results:
        section = content.find_section(result)
        results.append(
            {
                "html": render_result(result, tested_measures(claim.test), tested_rows(claim.test)),
                "analysis": result.analysis,
                "sample_size": result.sample_size,
                "anchor": content.anchor(section) if section else "",
                "method": section.method if section else "",
            }
        )
    examples = content.example_texts.get(claim.id)
    return {
        "id": claim.id,
        "outcome": verdict.outcome,
        "qualification": verdict.qualification,
        "is_specific": verdict.specificity in SPECIFIC,
        "text": claim.statement,
        "models": " and ".join(claim_result.models),
        "paper": claim.short_reference,
        "reference": claim.reference,
        "section": claim.section,
        "published": claim.published_value,
        "explanation": claim_result.answer,
        "results": results,
        "examples": _examples(examples) if examples else None,
    }


def _examples(texts: ExampleTexts) -> dict[str, Any]:
    ends = {
        end: [(" vs. ".join(f"{number:.2f}" for number in text.numbers), _truncate(text.text)) for text in measured]
        for end, measured in (("strongest", texts.strongest), ("weakest", texts.weakest))
    }
    return {
        "ends": ends,
        "measures": " vs. ".join(texts.measures),
        "n_examined": texts.n_examined,
        "n_total": texts.n_total,
    }


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH].rsplit(' ', 1)[0]} …"


def _section(section: AnalysisSection, content: ReportContent) -> dict[str, Any]:
    facts = [section.result.analysis, *content.distinguishing_facts(section), section.result.sample_size]
    return {
        "anchor": content.anchor(section),
        "question": section.analysis.question,
        "facts": " · ".join(facts),
        "models": " and ".join(section.models),
        "special_tokens": section.special_tokens,
        "summary": section.summary,
        "html": render_result(section.result),
    }


def _method(section: AnalysisSection) -> dict[str, Any]:
    result = section.result
    facts = {"options": result.options, "inputs": result.inputs, "provenance": result.provenance}
    return {
        "name": f"{result.analysis}, version {result.version}",
        "description": section.analysis.description,
        "facts": json.dumps(facts, indent=1, ensure_ascii=False, default=str),
    }
