"""A report as one self-contained HTML page that opens offline, in light and dark, narrow and wide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape

from bertology.citations import CITATIONS, short_citation
from bertology.claims.claim import measures_of, rows_of
from bertology.claims.evidence import Evidence
from bertology.claims.examine import Finding
from bertology.report.content import Content, Section
from bertology.report.drawings import drawn
from bertology.report.style import STYLE
from bertology.results.html_table import html_table

LONGEST = 300
"""Letters of a text that is shown behind a verdict; longer ones are cut, visibly."""


def page(content: Content) -> str:
    """The whole page: the scoreboard, a part for each group of analyses, then methods and papers."""
    title = escape(content.title)
    body = [f"<h1>{title}</h1>", *(f'<p class="notice">{escape(notice)}</p>' for notice in content.notices)]
    body += [*_contents(content), *_scoreboard(content), *_inside(content)]
    for part, sections in content.parts:
        body.append(f'<h2 id="{_anchor(part)}">{escape(part)}</h2>')
        for section in sections:
            body += _section(section, content)
    body += _methods(content)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{"".join(body)}</body></html>'
    )


def _contents(content: Content) -> Iterable[str]:
    names = [
        "What holds",
        *(["Look inside"] if content.inside else []),
        *(part for part, _ in content.parts),
        "Methods",
    ]
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in names)
    yield f'<nav aria-label="Contents">{links}</nav>'


def _scoreboard(content: Content) -> Iterable[str]:
    if not content.findings:
        return
    yield f'<h2 id="{_anchor("What holds")}">What holds</h2><p>{escape(content.summary)} '
    yield 'Open one for its numbers, its figure and its texts.</p><div class="board">'
    for finding in content.findings:
        yield from _finding(finding, content)
    yield "</div>"


def _finding(finding: Finding, content: Content) -> Iterable[str]:
    claim, verdict = finding.claim, finding.verdict
    kind = verdict.outcome.replace(" ", "-")
    yield f'<details id="{escape(claim.id)}"><summary><span class="verdict {kind}">{escape(verdict.outcome)}</span>'
    yield f'<span class="finding">{escape(claim.finding)}</span>'
    yield f'<span class="paper">{escape(short_citation(claim.paper))}</span></summary>'
    yield f'<div class="opened"><p>{_said(verdict.why)}</p>'
    for result in finding.results:
        section = content.section_of(result)
        yield drawn(result, measures_of(claim.test), rows_of(claim.test))
        if section is not None:
            link = f'<a href="#{escape(section.name)}">{escape(result.analysis)}</a>'
            yield f"<p>{link}, {result.rests_on}: {_marked(section.method)}</p>"
    if claim.id in content.evidence:
        yield _texts(content.evidence[claim.id])
    yield f'<p class="soft">{escape(CITATIONS[claim.paper])} {escape(claim.place)}: {escape(claim.published)}.</p>'
    yield "</div></details>"


def _texts(evidence: Evidence) -> str:
    """Where the finding shows most and least, each text with its own numbers."""
    named = _said(" beside ".join(evidence.named))
    told = f"Texts, each measured alone ({evidence.looked} of {evidence.there}): {named}."
    ends = "".join(
        f"<dt>{end}</dt>" + "".join(f"<dd><b>{_spelt(one.numbers)}</b> {escape(_cut(one.text))}</dd>" for one in some)
        for end, some in (("most", evidence.most), ("least", evidence.least))
    )
    return f'<div class="texts"><p class="soft">{told}</p><dl>{ends}</dl></div>'


def _said(text: str) -> str:
    """The text, with no line broken within a head or a range of layers."""
    return re.sub(r"\d+-\d+", r'<span class="whole">\g<0></span>', escape(text))


def _spelt(numbers: Iterable[float]) -> str:
    return " beside ".join(f"{number:.2f}" for number in numbers)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0]} …"


def _inside(content: Content) -> Iterable[str]:
    if content.inside:
        yield f'<h2 id="{_anchor("Look inside")}">Look inside</h2><p>One text, to see what the numbers speak of: '
        yield "they rest on many, a picture on one. Labels are those of the analyses, with their numbers.</p>"
        yield content.inside


def _section(section: Section, content: Content) -> Iterable[str]:
    result = section.result
    facts = [result.analysis, *content.told_apart(section), result.rests_on]
    yield f'<h3 id="{escape(section.name)}">{escape(section.question)}</h3>'
    yield f'<p class="soft">{escape(" · ".join(facts))} · '
    yield f"special tokens: {_marked(result.provenance['special_tokens'])}</p>"
    yield f"<p>{_marked(section.about.split(chr(10) * 2)[0])}</p>{drawn(result)}"


def _marked(text: str) -> str:
    """The text, with `names` as the names they are."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _methods(content: Content) -> Iterable[str]:
    yield f'<h2 id="{_anchor("Methods")}">Methods</h2>'
    if content.passes:
        yield f"<p>{len(content.passes)} passes over the texts: {escape('; '.join(content.passes))}.</p>"
    if content.longest:
        yield f"<p>{escape(content.longest)}</p>"
    if content.unjudged:
        yield f"<p>Not judged: {escape(', '.join(content.unjudged))}.</p>"
    rows = [{"": name, **counts} for name, counts in content.skipped.items()]
    if rows:
        yield f"<h3>What was read, cut and skipped</h3>{html_table(rows)}"
    yield "<h3>Analyses</h3>"
    for section in content.sections:
        result = section.result
        facts = {"options": result.options, "inputs": result.inputs, "provenance": result.provenance}
        yield f"<details><summary>{escape(result.analysis)}, version {result.version}</summary>"
        yield f"<p>{_marked(section.about)}</p><pre>{escape(json.dumps(facts, indent=1, ensure_ascii=False))}</pre>"
        yield "</details>"
    if content.papers:
        yield f"<h3>Papers</h3><ul>{''.join(f'<li>{escape(paper)}</li>' for paper in content.papers)}</ul>"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
