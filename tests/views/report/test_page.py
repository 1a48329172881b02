"""The report page: claims with numbers and papers, links that lead somewhere, one self-contained file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from bertology.analyses.run import ForwardPass
from bertology.citations import CITATIONS, short_citation
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.claims.run import ClaimResult
from bertology.claims.verdict import OUTCOMES, ControlVerdict, Specificity, Verdict
from bertology.results.shapes import LayerCurve, Table
from bertology.views.html_view import HtmlView
from bertology.views.report.content import ReportContent
from bertology.views.report.page import report_page
from results.example_results import SHAPES, estimates, measures_and_baselines, result
from views.report.example_content import CLAIM, content, section

RESULT = result(LayerCurve(**measures_and_baselines(2)))


def all_outcomes() -> ReportContent:
    claims = [
        ClaimResult(CLAIM.model_copy(update={"id": outcome}), Verdict(outcome, obstacle=f"why <{outcome}>"), (RESULT,))
        for outcome in OUTCOMES
    ]
    return content(
        section(RESULT),
        messages=["a <message>"],
        claim_results=claims,
        passes=[ForwardPass("mini", "english")] * 2,
        not_run=["late-one"],
    )


def test_every_claim_is_shown_with_its_verdict_numbers_and_paper() -> None:
    html = report_page(all_outcomes())
    assert "1 holds without a control, 1 fails, 1 inconclusive, 1 not applicable." in html
    for outcome in OUTCOMES:
        assert f"why &lt;{outcome}&gt;" in html
    assert html.count('<a href="#group/name">') == 4 and 'id="group/name"' in html
    assert html.count("First sentence. Second sentence.</p>") == 4 and "a &lt;message&gt;" in html
    assert html.count("What Does BERT Look At?") == 4 + 1 and f"Published ({CLAIM.section}): " in html
    assert "2 forward passes over corpora: english by mini 2 times." in html and "Not tested: late-one." in html


def test_a_finding_that_is_not_specific_is_marked() -> None:
    def page(specificity: Specificity) -> str:
        verdict = Verdict("holds", obstacle="why", controls=(ControlVerdict("untrained model", specificity),))
        return report_page(content(section(RESULT), claim_results=[ClaimResult(CLAIM, verdict, (RESULT,))]))

    assert '<small class="unspecific">also without training</small>' in page("earned too")
    assert "<small>specific</small>" in page("specific")


def test_a_page_is_self_contained_and_its_links_lead_somewhere() -> None:
    html = report_page(all_outcomes())
    assert not re.search(r"<(link|img|iframe)|\ssrc=|@import|url\(", html)
    assert set(re.findall(r"https?://([^/\s\"'`]+)", html)) == {"www.w3.org"}
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_a_claim_shows_only_the_tested_measures_and_rows() -> None:
    shape = LayerCurve(measures={"m": estimates(2), "o": estimates(2)}, baselines={"b": {"m": estimates(2)}})
    greater = {"kind": "greater", "left": {"measure": "o"}, "right": 0.0}
    html = report_page(content(claim_results=[_claim(greater, shape)]))
    assert html.count("<figure>") == 1 and "<h4>o</h4>" in html
    values = {"m": estimates(3, missing=False)}
    table = Table(measures=values, baselines={"b": values}, row_names=("det", "obj", "amod"))
    any_row = {"kind": "any row", "measure": "m", "baseline": "b", "rows": ["obj"]}
    html = report_page(content(claim_results=[_claim(any_row, table)]))
    assert ">obj</td>" in html and ">det</td>" not in html


def _claim(test: dict[str, Any], shape: LayerCurve | Table) -> ClaimResult:
    claim = CLAIM.model_validate({**CLAIM.model_dump(), "test": test})
    return ClaimResult(claim, Verdict("holds", obstacle="why"), (result(shape),))


def test_example_sentences_are_shown_with_their_numbers() -> None:
    long = "word " * 200
    texts = ExampleTexts(
        measures=("to next, head 3-3", "uniform attention"),
        strongest=(TextMeasurement("<Dear> Hannah,", (0.911, 0.1)), TextMeasurement(long, (0.8, 0.1))),
        weakest=(TextMeasurement("No.", (0.2, 0.1)),),
        n_examined=16,
        n_total=356,
    )
    claims = [ClaimResult(CLAIM, Verdict("holds", obstacle="why"), (RESULT,))]
    report = content(claim_results=claims, example_texts={CLAIM.id: texts})
    html = report_page(report)
    assert "<dt>strongest</dt><dd><b>0.91 vs. 0.10</b> &lt;Dear&gt; Hannah,</dd>" in html
    assert "(16 of 356)" in html and 'head <span class="range">3-3</span> vs. uniform attention' in html
    assert long not in html and "word …</dd>" in html
    assert "<dt>strongest</dt>" not in report_page(replace(report, example_texts={}))


def test_sections_show_facts_policy_and_names_as_code() -> None:
    html = report_page(content(section(RESULT, "In `names`.")))
    assert "group/name · a-corpus · n = 7 · Special tokens: excluded as sources and targets." in html
    assert html.count("In <code>names</code>.") == 1 + 1


def test_citations_have_a_short_form() -> None:
    assert [short_citation(key) for key in ("clark2019", "abnar2020", "ethayarajh2019")] == [
        "Clark et al. 2019",
        "Abnar & Zuidema 2020",
        "Ethayarajh 2019",
    ]
    assert all(len(short_citation(key)) < 40 and short_citation(key)[-4:].isdigit() for key in CITATIONS)


@dataclass(frozen=True)
class ReportView(HtmlView):
    """A report with a section of every shape."""

    @property
    def title(self) -> str:
        return "report"

    def html(self) -> str:
        return report_page(replace(all_outcomes(), sections=[section(result(shape)) for shape in SHAPES.values()]))


def test_the_page_fits_every_width_and_theme(opened: Any) -> None:
    for width, dark in ((360, False), (1280, True)):
        page = opened(ReportView(), width=width, dark=dark, ready="html[data-ready]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        fill = page.locator(".drawing text").first.evaluate("e => getComputedStyle(e).fill")
        assert (fill == "rgb(162, 171, 182)") == dark, fill
        page.locator("#fails summary").click()
        assert page.locator("#fails svg.drawing").first.is_visible()


def test_a_link_opens_a_claim(opened: Any) -> None:
    page = opened(ReportView(), "inconclusive", ready="html[data-ready]")
    assert page.locator("details[open]").evaluate("e => e.id") == "inconclusive"
