"""Findings and results as one self-contained HTML page that opens offline, in light and dark, narrow and wide."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from bertology.citations import CITATIONS
from bertology.claims.examine import Finding
from bertology.claims.judge import OUTCOMES
from bertology.results.estimate import Estimate, Estimates
from bertology.results.figures import head_grid, layer_curve
from bertology.results.html_table import html_table
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #5b6470; --line: #d8dde3; --hue: #1f5fa8;
  --yes: #00695c; --no: #b3400e; --maybe: #7a5d00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #16181c; --soft: #a2abb6; --line: #343a42; --hue: #7fb5f0;
    --yes: #4fc3a8; --no: #ff9d66; --maybe: #e0bd4d; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 1080px; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem; border-top: 1px solid var(--line);
  padding-top: 1.5rem; } h3 { font-size: 1rem; margin: 0 0 .3rem; font-weight: 600; }
p { max-width: 70ch; } .soft { color: var(--soft); font-size: .9rem; }
.notice { border-left: 4px solid var(--hue); padding: .2rem 1rem;
  background: color-mix(in srgb, var(--hue) 9%, transparent); }
.figures { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem; } figure { margin: 0; max-width: 100%; }
svg { max-width: 100%; height: auto; } svg text { font-size: 10px; fill: var(--soft); }
.mark { fill: var(--hue); } .curve { fill: none; stroke: var(--hue); stroke-width: 2; }
.band { fill: var(--hue); opacity: .18; } .baseline { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.board details { margin: 0; border-bottom: 1px solid var(--line); } .board summary { display: flex; gap: 1rem;
  padding: .35rem 0; cursor: pointer; align-items: baseline; } .board p { margin: .2rem 0 .6rem 8.5rem; }
.verdict { flex: 0 0 7.5rem; font-size: .85rem; font-weight: 600; }
.verdict::before { display: inline-block; width: 1.3em; }
.holds::before { content: "✓"; } .fails::before { content: "✗"; } .inconclusive::before { content: "~"; }
.not-applicable::before { content: "–"; } .holds { color: var(--yes); } .fails { color: var(--no); }
.inconclusive { color: var(--maybe); } .not-applicable { color: var(--soft); font-weight: 400; }
a { color: var(--hue); }
@media (max-width: 600px) { .board p { margin-left: 0; } .board summary { flex-direction: column; gap: 0; }
  .verdict { flex: none; } }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; } details { margin: 1rem 0; } pre { white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .8rem; }
"""


class Section:
    """One analysis on the page: its question, its documentation and its result."""

    def __init__(self, question: str, about: str, result: Result) -> None:
        self.question = question
        self.about = about
        self.result = result


def page(title: str, notices: Sequence[str], findings: Sequence[Finding], sections: Sequence[Section]) -> str:
    """The whole page: the scoreboard of findings, then a section for each analysis they rest on."""
    body = [f"<h1>{escape(title)}</h1>"]
    body += [f'<p class="notice">{escape(notice)}</p>' for notice in notices]
    body += _scoreboard(findings)
    for section in sections:
        body += _section(section)
    body.append("<h2>Methods</h2>")
    body += [_methods(section) for section in sections]
    body.append("<h2>Papers</h2><ul>")
    cited = sorted({finding.claim.paper for finding in findings})
    body += [f"<li>{escape(CITATIONS[paper])}</li>" for paper in cited]
    body.append("</ul>")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{"".join(body)}</body></html>'
    )


def _scoreboard(findings: Sequence[Finding]) -> Iterable[str]:
    if not findings:
        return
    counts = Counter(finding.verdict.outcome for finding in findings)
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    yield f"<h2>What holds</h2><p>{len(findings)} published findings: {escape(summary)}.</p>"
    yield '<div class="board">'
    for finding in findings:
        claim, verdict = finding.claim, finding.verdict
        kind = verdict.outcome.replace(" ", "-")
        links = ", ".join(
            f'<a href="#{escape(result.analysis)}">{escape(result.analysis)}</a>' for result in finding.results
        )
        yield f'<details id="{escape(claim.id)}"><summary><span class="verdict {kind}">{escape(verdict.outcome)}</span>'
        yield f"<span>{escape(claim.finding)}</span></summary>"
        yield f"<p>{escape(verdict.why)}</p>"
        yield f'<p class="soft">{escape(claim.paper)}, {escape(claim.place)}: {escape(claim.published)}.'
        yield f" {links and 'Measured by ' + links + '.'}</p></details>"
    yield "</div>"


def _section(section: Section) -> Iterable[str]:
    result = section.result
    yield f'<h2 id="{escape(result.analysis)}">{escape(section.question)}</h2>'
    yield f'<p class="soft">{escape(result.analysis)} · n = {result.n} inputs · '
    yield f"special tokens: {escape(result.provenance['special_tokens'])}</p>"
    yield f"<p>{escape(section.about.split(chr(10) * 2)[0])}</p>"
    match result.data:
        case HeadGrid() as grid:
            yield '<div class="figures">'
            for name, estimates in grid.measures.items():
                beside = {b: m[name] for b, m in grid.baselines.items() if name in m}
                unit = f"{grid.units.get(name, '')}; pale to strong: {_range(estimates)}"
                yield f"<figure><h3>{escape(name)}</h3>{head_grid(name, estimates, beside)}"
                yield f'<figcaption class="soft">{escape(unit)}</figcaption></figure>'
            yield f"</div>{_strongest(grid)}"
        case LayerCurve() as curve:
            yield '<div class="figures">'
            for name, estimates in curve.measures.items():
                beside = {b: m[name] for b, m in curve.baselines.items() if name in m}
                lines = ", ".join(beside) or "none"
                caption = f"{curve.units.get(name, '')}; dashed: {lines}"
                yield f"<figure><h3>{escape(name)}</h3>{layer_curve(name, estimates, beside, curve.first)}"
                yield f'<figcaption class="soft">{escape(caption)}</figcaption></figure>'
            yield "</div>"
        case _:
            yield html_table(result.rows())


def _range(estimates: Estimates) -> str:
    measured = estimates.value[np.isfinite(estimates.value)]
    return f"{measured.min():.3g} to {measured.max():.3g}" if measured.size else "nothing measured"


def _strongest(grid: HeadGrid) -> str:
    rows: list[dict[str, Any]] = []
    for name, estimates in grid.measures.items():
        if not np.isfinite(estimates.value).any():
            continue
        place = np.unravel_index(int(np.nanargmax(estimates.value)), estimates.shape)
        head = Head(int(place[0]), int(place[1]))
        best: Estimate = estimates[head]
        row: dict[str, Any] = {
            "measure": name,
            "highest head": str(head),
            "value [95 % interval]": str(best),
            "n": best.n,
        }
        rows.append(row | {b: str(m[name][head]) for b, m in grid.baselines.items() if name in m})
    return html_table(rows)


def _methods(section: Section) -> str:
    result = section.result
    facts = {"options": result.options, "inputs": result.inputs, "provenance": result.provenance}
    return (
        f"<details><summary>{escape(result.analysis)}, version {result.version}</summary>"
        f"<p>{escape(section.about)}</p><pre>{escape(json.dumps(facts, indent=1, ensure_ascii=False))}</pre></details>"
    )
