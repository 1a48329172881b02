"""The content of a report: headings from declarations, anchors, facts that distinguish sections."""

from __future__ import annotations

from bertology.analyses.declaration import REPORT_SECTIONS
from bertology.claims.claim_results import ClaimResult
from bertology.claims.verdict import OUTCOMES, Verdict
from bertology.results.shapes import LayerCurve
from bertology.views.report.content import AnalysisSection, ReportSubject, display_name, lead_sentence
from results.example_results import measures_and_baselines, result
from views.report.example_content import CLAIM, content, make_analysis, section

RESULT = result(LayerCurve(**measures_and_baselines(2)))


def test_headings_are_declared_by_analyses_and_ordered() -> None:
    names = ("probes/x", "attention/x", "plugin/x", "attention/y")
    fields = {"attention/y": {"report_section": "Effects of fine-tuning"}}
    sections = [AnalysisSection(make_analysis(name=name, **fields.get(name, {})), RESULT) for name in names]
    headings = [heading for heading, _ in content(*sections).sections_by_heading]
    assert headings == [REPORT_SECTIONS[0], REPORT_SECTIONS[2], "Effects of fine-tuning", REPORT_SECTIONS[-1]]


def test_a_heading_of_a_plug_in_comes_last() -> None:
    sections = [AnalysisSection(make_analysis(report_section="My heading"), RESULT), section(RESULT)]
    assert [heading for heading, _ in content(*sections).sections_by_heading] == [REPORT_SECTIONS[-1], "My heading"]


def test_sections_of_one_analysis_have_different_anchors() -> None:
    first, second = section(RESULT), section(RESULT)
    assert [content(first, second).anchor(s) for s in (first, second)] == [
        "analysis-group-name",
        "analysis-group-name-2",
    ]


def test_sections_of_one_analysis_are_distinguished_by_corpus_and_options() -> None:
    with_heads = RESULT.model_copy(update={"options": {**RESULT.options, "show": "heads"}})
    report = content(section(RESULT), section(with_heads))
    facts = [report.distinguishing_facts(s) for s in report.sections]
    assert facts == [["a-corpus", "show: layers"], ["a-corpus", "show: heads"]]


def test_claims_are_counted_by_outcome() -> None:
    results = [ClaimResult(CLAIM, Verdict(outcome, obstacle="why"), ()) for outcome in OUTCOMES]
    summary = content(claim_results=results).summary
    assert summary == (
        "4 published claims tested: 0 hold and are specific to the model, 1 holds without a control, 1 fails, "
        "1 inconclusive, 1 not applicable."
    )


def test_the_method_is_the_first_two_sentences() -> None:
    assert section(RESULT, "One: `two`. Three.\n\nFour.").method == "One: `two`."


def test_computing_time_lists_what_took_longest() -> None:
    elapsed = {"a": 0.2, "b": 120.4, "c": 3.0}
    assert content(elapsed=elapsed).timing_summary == "Computation took 124 s (b 120 s, c 3 s)."
    assert content(elapsed={"a": 0.2}).timing_summary == "Computation took 0 s."
    assert content().timing_summary == ""


def test_models_have_names_not_paths() -> None:
    names = ("mini", "google/bert", "/models/gte-small", "random:./models/gte-small", "~/gte", "random:mini")
    assert [display_name(name) for name in names] == [
        "mini", "google/bert", "gte-small", "random:gte-small", "gte", "random:mini",
    ]  # fmt: skip


def test_the_subject_is_one_sentence() -> None:
    subject = ReportSubject("/models/gte", "texts.txt", 12, 12, n_examples=1, unit="texts", against="/models/tuned")
    assert subject.sentence == (
        "gte has 12 layers of 12 heads and read 1 text of texts.txt. tuned, fine-tuned from it, stands beside it."
    )
    assert "random:mini, which has random weights, has 8 layers" in ReportSubject("random:mini", n_layers=8).sentence
    result = ClaimResult(CLAIM, Verdict("fails", obstacle="why"), ())
    report = content(subject=subject, claim_results=[result])
    assert "1 published finding about BERT and its kin was tested" in lead_sentence(report)
    assert report.title == "What gte looks at, and what it knows"
