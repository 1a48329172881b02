"""A report as a self-contained HTML page, for light and dark, narrow and wide screens, and paper."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from bertology.analyses import registry
from bertology.citations import CITATIONS, bibtex_entry
from bertology.claims.claim import ClaimRun
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.html import render
from bertology.results.drawing.strip import MARK_NAMES, draw_sign
from bertology.results.drawing.style import page_css
from bertology.results.html_table import html_table
from bertology.results.palette import css_variables
from bertology.results.shapes import Head
from bertology.views.report.content import AnalysisSection, ReportContent, display_name, lead_sentence
from bertology.views.report.findings import (
    STATUSES,
    Finding,
    findings_by_topic,
    headline_findings,
    headline_rule,
    other_numbers,
    surprising_findings,
    tally,
    unjudged_reasons,
)
from bertology.views.report.finetuning.changes import FinetuningChanges
from bertology.views.report.finetuning.sentences import conclusions, reading_notes
from bertology.views.report.finetuning.tables import changes_pictures, changes_tables
from bertology.views.report.next_steps import claim_command, next_steps
from bertology.views.report.picture_shapes import Picture
from bertology.views.report.pictures import chosen_head, chosen_layers, large_pictures, small_picture
from bertology.views.report.results import render_result

MAX_TEXT_LENGTH = 300
"""Example sentences are cut to this many characters."""
MAX_SURPRISES = 5
CARD_WIDTH, LANES_WIDTH = 340, 560
UNSAID_QUALIFICATIONS = frozenset({"specific", "also without training"})
"""What the word of the status says already."""
RESERVED_IDS = frozenset(
    {
        "top", "in-short", "surprising", "not-judged", "next", "fine-tuning", "findings", "attention-view", "analyses",
        "methods", "references",
    }
)  # fmt: skip


def report_page(content: ReportContent) -> str:
    """What to conclude, all findings by topic, a view of the attention, every analysis, methods and references."""
    findings = content.findings
    headlines, deviating = headline_findings(findings)
    counts, surprising = tally(findings), surprising_findings(findings)
    selected = {id(finding) for finding in (*headlines, deviating) if finding is not None}
    return render(
        "report.html",
        content=content,
        light=css_variables("light"),
        dark=css_variables("dark"),
        figure_css=Markup(page_css()),
        attention_view=Markup(content.attention_view),
        lead=lead_sentence(content),
        tally=[
            {"status": status, "count": n, "text": STATUSES[status].tally[n != 1], "word": STATUSES[status].word}
            for status, n in counts.items()
        ],
        tally_label=", ".join(f"{n} {STATUSES[status].tally[n != 1]}" for status, n in counts.items()),
        cards=[_card(finding, content) for finding in headlines]
        + ([_card(deviating, content) | {"is_deviation": True}] if deviating is not None else []),
        headline_rule=headline_rule(findings),
        surprises=[_line(finding) for finding in surprising[:MAX_SURPRISES]],
        n_surprises=len(surprising),
        other_numbers=[_line(finding) for finding in other_numbers(findings)],
        unjudged=[
            {"text": reason, "count": len(group), "status": group[0].status}
            for reason, group in unjudged_reasons(findings).items()
        ],
        next_steps=next_steps(content),
        groups=[
            {
                "topic": topic,
                "id": _slug(f"topic-{topic}"),
                "rows": [_finding(f, content) | {"is_headline": id(f) in selected} for f in group],
            }
            for topic, group in findings_by_topic(findings).items()
        ],
        statuses=STATUSES,
        legend=[(draw_sign(kind), name) for kind, name in MARK_NAMES.items()],
        papers=sorted({finding.claim.paper: finding.claim.short_reference for finding in findings}.items()),
        analyses=sorted({run.analysis for finding in findings for run in finding.claim.all_runs.values()}),
        finetuning=_finetuning(content.finetuning) if content.finetuning is not None else None,
        parts=[
            (heading, [_section(section, content) for section in sections])
            for heading, sections in content.sections_by_heading
        ],
        input_table=html_table([{"input": name, **counts} for name, counts in content.input_counts.items()]),
        methods=[_method(section) for section in content.sections],
    )


def _finetuning(changes: FinetuningChanges) -> dict[str, Any]:
    return {
        "conclusions": conclusions(changes),
        "pictures": changes_pictures(changes),
        "tables": {name: html_table(rows) for name, rows in changes_tables(changes).items()},
        "notes": reading_notes(changes),
    }


def finding_id(finding: Finding) -> str:
    """The id of a finding on the page: that of its claim, unless the page has it for something else."""
    name = finding.claim.id
    return f"finding-{name}" if name in RESERVED_IDS or name.startswith(("analysis-", "topic-", "sign-")) else name


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class _Look:
    """What the attention view shows of a finding: its head, or the mean of all heads of its first layer.

    Both can be missing: then the view opens on a head of its own choice.
    """

    finding: str
    head: Head | None
    layer: int | None
    n_heads: int

    @property
    def what(self) -> str:
        """What is opened, in words."""
        if self.head is not None:
            return f"head {self.head}"
        return "the attention" if self.layer is None else f"layer {self.layer + 1}"

    def link(self, text: str = "") -> str:
        """The fragment of an address that shows it on a text of the page, or on the sample sentence."""
        state: dict[str, str] = {"finding": self.finding}
        if text:
            state["text"] = text
        state["view"] = "head"
        if self.head is not None:
            state |= {"layer": str(self.head[0] + 1), "heads": str(self.head[1] + 1)}
        elif self.layer is not None:
            heads = ",".join(str(head) for head in range(1, self.n_heads + 1))
            state |= {"layer": str(self.layer + 1), "heads": heads, "fusion": "mean"}
        return f"#attention-view?{urlencode(state, safe=',')}"


def _look(finding: Finding, content: ReportContent) -> _Look | None:
    """What the view shows of a finding; None if the page has no view, or nothing was measured."""
    if finding.result is None or not content.attention_view:
        return None
    head, layers = chosen_head(finding.result), chosen_layers(finding.result)
    return _Look(finding_id(finding), head, min(layers, default=None), content.subject.n_heads)


def _main_view(finding: Finding, content: ReportContent) -> dict[str, str] | None:
    """The link to the view of a finding's head, on its strongest text or, if it has none, on the sample sentence."""
    look = _look(finding, content)
    if look is None:
        return None
    examples = content.example_texts.get(finding.claim.id)
    for measured in examples.texts if examples is not None else ():
        if name := content.text_names.get((finding.claim.id, measured.index)):
            return {"link": look.link(name), "what": look.what, "on": "its strongest text"}
    if look.head is None:
        return None
    return {"link": look.link(), "what": look.what, "on": "the sample sentence"}


def _card(finding: Finding, content: ReportContent) -> dict[str, Any]:
    assert finding.result is not None, "a card has evidence"
    picture = small_picture(finding.result, content.head_scores.get(finding.claim.id))
    lanes = finding.strip.lanes(CARD_WIDTH) if finding.strip is not None else ""
    return {
        "id": finding_id(finding),
        "headline": finding.headline,
        "answer": finding.short_answer,
        "picture": picture.svg if picture is not None and finding.status != "fails" else lanes,
        "view": _main_view(finding, content),
        "is_deviation": False,
    }


def _line(finding: Finding) -> dict[str, Any]:
    """A finding with its number and the published one."""
    return {"id": finding_id(finding), "headline": finding.headline, "numbers": finding.numbers}


def _finding(finding: Finding, content: ReportContent) -> dict[str, Any]:
    claim, result, strip = finding.claim, finding.result, finding.strip
    text = STATUSES[finding.status]
    examples = content.example_texts.get(claim.id)
    qualification = result.verdict.qualification if result is not None else ""
    pictures = large_pictures(result, content.head_scores.get(claim.id)) if result is not None else []
    if not pictures and strip is not None:
        pictures = [Picture(strip.lanes(LANES_WIDTH))]
    return {
        "id": finding_id(finding),
        "status": finding.status,
        "word": text.word,
        "definition": text.definition,
        "qualification": "" if qualification in UNSAID_QUALIFICATIONS else qualification,
        "headline": finding.headline,
        "statement": claim.statement,
        "answer": finding.answer,
        "strip": strip.svg() if strip is not None else "",
        "tip": strip.description if strip is not None else "",
        "number": strip.number if strip is not None else "",
        "interval": strip.interval if strip is not None else "",
        "position": strip.position if strip is not None else "",
        "paper": claim.paper,
        "short_reference": claim.short_reference,
        "reference": claim.reference,
        "section": claim.section,
        "published": claim.published_value,
        "analyses": [run.analysis for run in claim.all_runs.values()],
        "pictures": pictures,
        "methods": list(_methods(finding, content)),
        "examples": _examples(examples, finding, content) if examples else None,
        "view": _main_view(finding, content),
        "command": "\n".join(claim_command(run, content) for run in claim.all_runs.values()),
        "bibtex": bibtex_entry(claim.paper) if claim.paper in CITATIONS else "",
    }


def _methods(finding: Finding, content: ReportContent) -> list[dict[str, Any]]:
    if finding.result is None:
        return [_untested_method(run) for run in finding.claim.all_runs.values()]
    methods: list[dict[str, Any]] = []
    for result in finding.result.results:
        section = content.find_section(result)
        methods.append(
            {
                "analysis": result.analysis,
                "models": " and ".join(map(display_name, finding.result.models)),
                "sample_size": result.sample_size,
                "anchor": content.anchor(section) if section else "",
                "method": section.method if section else "",
            }
        )
    return methods


def _untested_method(run: ClaimRun) -> dict[str, Any]:
    analysis = registry.find(run.analysis)
    question = analysis.question if analysis is not None else ""
    return {"analysis": run.analysis, "models": "not run", "sample_size": "", "anchor": "", "method": question}


def _examples(texts: ExampleTexts, finding: Finding, content: ReportContent) -> dict[str, Any]:
    look = _look(finding, content)

    def text(measured: TextMeasurement) -> dict[str, Any]:
        name = content.text_names.get((finding.claim.id, measured.index))
        return {
            "numbers": " vs. ".join(f"{number:.2f}" for number in measured.numbers),
            "text": _truncate(measured.text),
            "link": look.link(name) if look is not None and name else "",
            "what": look.what if look is not None else "",
        }

    ends = {
        end: [text(one) for one in measured]
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
    return {
        "anchor": content.anchor(section),
        "question": section.analysis.question,
        "facts": " · ".join([section.result.analysis, *content.distinguishing_facts(section)]),
        "sample_size": section.result.sample_size,
        "models": " and ".join(map(display_name, section.models)),
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
