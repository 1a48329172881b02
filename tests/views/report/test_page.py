"""The report page: what to conclude first, every finding with its evidence, one self-contained file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from accessibility import accessibility_violations
from bertology.citations import CITATIONS, short_citation
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import TOPICS, ClaimRun
from bertology.claims.claim_results import ClaimResult
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.claims.verdict import ControlVerdict, Verdict
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from bertology.views.html_view import HtmlView
from bertology.views.report.content import ReportContent
from bertology.views.report.findings import STATUSES
from bertology.views.report.page import RESERVED_IDS, report_page
from browsing import wait_until
from results.example_results import SHAPES, estimates, measures_and_baselines, result
from views.report.example_content import CLAIM, content, measured, section

RESULT = result(LayerCurve(**measures_and_baselines(2)))
GRID = result(HeadGrid(measures={"attention": estimates(4, 4)}, baselines={"b": {"attention": estimates(4, 4)}}))
SLOW = next(claim for claim in all_claims() if claim.slow)
READY = "html[data-ready]"


def all_statuses(**fields: Any) -> ReportContent:
    """A report with a finding of every status, of two topics and two papers."""
    fails = CLAIM.model_copy(update={"id": "fails", "denial": "Not a bit.", "published": 0.9, "topic": TOPICS[0]})
    inapplicable = CLAIM.model_copy(update={"id": "inapplicable", "paper": "michel2019", "requirements": ("trees",)})
    claims = [
        measured(id="specific", headline="It is <specific>.", results=(GRID,)),
        measured(id="unspecific", specificity="earned too", results=(GRID,)),
        measured(id="uncontrolled", specificity="not measured", results=(GRID,)),
        measured(value=0.41, id="undecided", results=(GRID,)),
        measured(fails, 0.1, results=(GRID,)),
        ClaimResult(inapplicable, Verdict("not applicable", obstacle="There are no <trees>.", lacking="trees"), ()),
    ]
    values: dict[str, Any] = {"messages": ["a <message>"], "claim_results": claims, "not_run": [SLOW]}
    return content(section(GRID), **(values | fields))


def test_the_first_screen_says_what_was_read_and_what_to_conclude() -> None:
    html = report_page(all_statuses())
    assert "<h1>What <em>mini</em> looks at, and what it knows</h1>" in html
    assert "mini has 8 layers of 8 heads and read 356 sentences of english.conllu." in html
    assert "5 published findings" in html and "a &lt;message&gt;" in html
    for status, text in STATUSES.items():
        count = 2 if status == "not-tested" else 1
        assert re.search(rf'href="#findings\?verdict={status}".*?<b>{count}</b> {text.tally[count != 1]}</a>', html)
    assert html.count('<article class="card') == 2 and '<article class="card deviation">' in html
    assert "Chosen by rule" in html and "It is &lt;specific&gt;." in html
    surprising = html[html.index('id="surprising"') : html.index('id="not-judged"')]
    assert "Not a bit." in surprising and "Published: " in surprising
    unjudged = html[html.index('id="not-judged"') : html.index('id="next"')]
    assert "<b>1</b> not tested without trees" in unjudged and "<b>1</b> left for --full" in unjudged
    assert "bertology report mini --full" in html and "bertology report mini --against FINE_TUNED" in html


def test_every_finding_has_a_row_with_verdict_strip_number_and_paper() -> None:
    html = report_page(all_statuses())
    rows = re.findall(r'<details class="finding (\S+)[^"]*" id="([^"]+)"(.*?)</summary>', html, re.S)
    assert {name: status for status, name, _ in rows} == {
        "specific": "specific",
        "unspecific": "unspecific",
        "uncontrolled": "uncontrolled",
        "undecided": "undecided",
        "fails": "fails",
        "inapplicable": "not-tested",
        SLOW.id: "not-tested",
    }
    for status, name, row in rows:
        assert f'href="#sign-{status}"' in row and f"<span>{STATUSES[status].word}</span>" in row
        assert ("mark-estimate" in row) == ("<b>" in row) == (status != "not-tested"), name
    assert 'class="mark-untrained"' in html and 'class="mark-published"' in html and "80 %" in html
    headings = re.findall(r'<h3 id="topic-[^"]+">([^<]+)</h3>', html)
    assert headings == [topic for topic in TOPICS if topic in headings] and len(headings) >= 2


def test_an_opened_finding_has_answer_figure_method_source_and_command() -> None:
    report = all_statuses(attention_view="<div data-bertology-view data-state></div>")
    html = report_page(report)
    opened = html[html.index('id="specific"') :]
    opened = opened[: opened.index('<details class="finding', 10)]
    result = report.claim_results[0]
    assert isinstance(result, ClaimResult) and result.answer.split(".")[0] in re.sub("<[^>]+>", "", opened)
    assert "attention, by layer and head" in opened and opened.count('class="chosen"') == 1
    assert f"<q>{CLAIM.statement.replace('>', '&gt;')}</q>" in opened
    assert '<a href="#analysis-group-name">group/name</a>' in opened and 'id="analysis-group-name"' in html
    assert "First sentence. Second sentence." in opened and "What Does BERT Look At?" in opened
    assert "@inproceedings{clark2019" in opened
    assert "bertology run attention/targets --model mini --corpus english --figure targets.svg" in opened
    link = "#attention-view?finding=specific&amp;view=head&amp;layer=3&amp;heads=2"
    assert f'<a class="button open-view" href="{link}">Open head 3-2 on the sample sentence</a>' in opened
    assert "open-view" not in report_page(all_statuses())


def test_a_finding_without_a_drawable_result_shows_its_numbers() -> None:
    html = report_page(content(claim_results=[measured()]))
    opened = html[html.index('<div class="opened">') :]
    assert "<figure>" in opened and ">untrained</text>" in opened


def test_a_simpler_explanation_other_than_the_untrained_model_is_named() -> None:
    finding = measured()
    control = ControlVerdict("distance and words", "earned too", finding.verdict.comparisons)
    html = report_page(content(claim_results=[replace(finding, verdict=replace(finding.verdict, controls=(control,)))]))
    assert "<small>no better than distance and words</small>" in html
    assert "<small>also without training</small>" not in report_page(all_statuses())


def test_a_page_is_self_contained_and_its_links_lead_somewhere() -> None:
    html = report_page(all_statuses(sections=[section(result(shape)) for shape in SHAPES.values()]))
    assert not re.search(r"<(link|img|iframe)|\ssrc=|@import|url\(", html)
    assert "default-src 'none'" in html
    assert set(re.findall(r"https?://([^/\s\"'`]+)", html)) == {"www.w3.org"}
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-z0-9-]+", name) for name in ids)
    links = {link.split("?")[0] for link in re.findall(r'href="#([^"]+)"', html)}
    assert links <= set(ids) and {"top", "findings", "in-short"} <= RESERVED_IDS & links


def test_a_finding_named_like_a_part_of_the_page_gets_another_id() -> None:
    html = report_page(content(claim_results=[measured(id="methods"), measured(id="topic-x")]))
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and {"finding-methods", "finding-topic-x"} <= set(ids)


def test_the_page_does_not_depend_on_what_was_in_the_store() -> None:
    assert report_page(all_statuses()) == report_page(all_statuses(elapsed={"a": 12.0}))


def test_a_claim_shows_only_the_tested_measures_and_rows() -> None:
    shape = LayerCurve(measures={"m": estimates(2), "o": estimates(2)}, baselines={"b": {"m": estimates(2)}})
    greater = {"kind": "greater", "left": {"measure": "o"}, "right": 0.0}
    html = report_page(content(claim_results=[_claim(greater, shape)]))
    assert html.count("<figure>") == 1 and '<p class="figure-name">o</p>' in html
    values = {"m": estimates(3, missing=False)}
    table = Table(measures=values, baselines={"b": values}, row_names=("det", "obj", "amod"))
    any_row = {"kind": "any row", "measure": "m", "baseline": "b", "rows": ["obj"]}
    html = report_page(content(claim_results=[_claim(any_row, table)]))
    assert ">obj</text>" in html and ">det</text>" not in html


def _claim(test: dict[str, Any], shape: LayerCurve | Table) -> ClaimResult:
    claim = CLAIM.model_validate({**CLAIM.model_dump(), "test": test, "answer": ""})
    return ClaimResult(claim, Verdict("holds", obstacle="why"), (result(shape),))


def test_example_sentences_are_shown_with_their_numbers() -> None:
    long = "word " * 200
    texts = ExampleTexts(
        measures=("to next, head 3-3", "uniform attention"),
        strongest=(TextMeasurement("<Dear> Hannah,", (0.911, 0.1), 0), TextMeasurement(long, (0.8, 0.1), 3)),
        weakest=(TextMeasurement("No.", (0.2, 0.1), 9),),
        n_examined=16,
        n_total=356,
        run=ClaimRun(analysis="attention/targets"),
    )
    report = content(claim_results=[measured()], example_texts={CLAIM.id: texts})
    html = report_page(report)
    assert "<dt>strongest</dt><dd><b>0.91 vs. 0.10</b> &lt;Dear&gt; Hannah,</dd>" in html
    assert "(16 of 356)" in html and 'head <span class="range">3-3</span> vs. uniform attention' in html
    assert long not in html and "word …</dd>" in html
    assert "<dt>strongest</dt>" not in report_page(replace(report, example_texts={}))


def test_sections_show_facts_policy_and_names_as_code() -> None:
    html = report_page(content(section(RESULT, "In `names`.")))
    assert '<span class="facts">group/name · a-corpus</span>' in html
    assert "n = 7 · Special tokens: excluded as sources and targets." in html
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
    """A report with a finding of every status and a section of every shape."""

    @property
    def title(self) -> str:
        return "report"

    def html(self) -> str:
        return report_page(all_statuses(sections=[section(result(shape)) for shape in SHAPES.values()]))


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
def test_the_page_fits_every_width_and_theme(opened: Any, width: int, dark: bool) -> None:
    page = opened(ReportView(), width=width, dark=dark, ready=READY)
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    fill = page.locator(".drawing text.muted").first.evaluate("e => getComputedStyle(e).fill")
    assert (fill == "rgb(162, 171, 182)") == dark, fill
    assert page.locator("#fails svg.drawing").first.is_visible()


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1024, True)], ids=["phone", "dark"])
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_the_page_breaks_no_rule_of_accessibility(opened: Any, width: int, dark: bool, is_open: bool) -> None:
    page = opened(ReportView(), width=width, dark=dark, ready=READY)
    if is_open:
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert accessibility_violations(page) == []


def test_a_link_opens_a_finding_or_an_analysis(opened: Any) -> None:
    page = opened(ReportView(), "undecided", ready=READY)
    assert page.locator("details[open]").evaluate_all("all => all.map(e => e.id)") == ["undecided"]
    assert page.evaluate("document.getElementById('undecided').getBoundingClientRect().top") < 400
    page.evaluate("location.hash = 'analysis-group-name-2'")
    page.wait_for_selector("#analysis-group-name-2[open]")


def test_findings_are_filtered_by_verdict_topic_paper_and_words(opened: Any) -> None:
    page = opened(ReportView(), ready=READY)

    def shown() -> set[str]:
        return set(page.locator("details.finding:not([hidden])").evaluate_all("all => all.map(e => e.id)"))

    assert len(shown()) == 7
    page.locator(".key a", has_text="not tested").click()
    wait_until(page, "document.querySelector('.filters output').textContent === '2 of 7 findings'")
    assert shown() == {"inapplicable", SLOW.id} and page.locator(".topic:visible").count() == len(
        {CLAIM.topic, SLOW.topic}
    )
    page.select_option("select[data-filter=paper]", "michel2019")
    assert shown() == {"inapplicable"} and "paper=michel2019" in page.evaluate("location.hash")
    page.select_option("select[data-filter=paper]", "")
    page.locator("[data-filter=verdict] button[aria-pressed=true]").click()
    assert len(shown()) == 7
    page.fill("input[data-filter=q]", "not a BIT")
    assert shown() == {"fails"}
    page.locator("input[data-filter=q]").fill("")
    page.locator("[data-filter=topic] button", has_text=TOPICS[0]).focus()
    page.keyboard.press("Enter")
    assert "fails" in shown() and "specific" not in shown()
    # A link to a finding that the filter hides shows it.
    page.evaluate("location.hash = 'specific'")
    page.wait_for_selector("#specific[open]:not([hidden])")


def test_a_filter_is_part_of_the_address(opened: Any) -> None:
    page = opened(ReportView(), "findings?verdict=fails", ready=READY)
    assert page.locator("details.finding:not([hidden])").evaluate_all("all => all.map(e => e.id)") == ["fails"]
    assert page.locator("[data-filter=verdict] button[aria-pressed=true]").get_attribute("value") == "fails"


def test_without_a_script_everything_can_be_read(browser: Any, tmp_path: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(ReportView().save(tmp_path / "page.html").as_uri())
    assert page.locator("details.finding").count() == 7 and not page.locator(".filters").is_visible()
    page.locator("#specific > summary").click()
    assert page.locator("#specific .answer").is_visible()
    context.close()


def test_paper_shows_every_row_and_no_control(opened: Any) -> None:
    page = opened(ReportView(), width=720, dark=True, ready=READY)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("details.finding > summary .mark-estimate").count() == 5
    assert not page.locator(".filters").is_visible() and not page.locator("nav.top").is_visible()
    assert page.locator("#specific .answer").evaluate("e => e.checkVisibility({ contentVisibilityAuto: true })")
