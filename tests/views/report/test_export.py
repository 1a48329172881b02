"""Reports as Markdown and JSON say what the page says."""

from __future__ import annotations

import json
import re

from bertology.analyses.run import ForwardPass
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import ClaimRun
from bertology.claims.claim_results import ClaimResult
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.claims.verdict import Verdict
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.views.report.export import as_json, as_markdown
from results.example_results import measures_and_baselines, result
from views.report.example_content import CLAIM, content, measured, section

RESULT = result(LayerCurve(**measures_and_baselines(2)))
CLAIM_RESULT = ClaimResult(CLAIM, Verdict("fails", obstacle="a | b"), (RESULT,), ("mini",))
RUN = ClaimRun(analysis="attention/targets")
SLOW = next(claim for claim in all_claims() if claim.slow)


def test_markdown_has_headlines_findings_by_topic_sections_and_methods() -> None:
    claims = [measured(headline="A head does it."), measured(CLAIM, 0.1, id="x", denial="Nothing | of it.")]
    text = as_markdown(content(section(RESULT), messages=["message"], claim_results=claims, not_run=[SLOW]))
    headings = re.findall(r"^#+ .*$", text, re.M)
    assert headings[:5] == [
        "# What mini looks at, and what it knows",
        "## In short",
        "## What is surprising",
        "## What could not be judged",
        "## What to do next",
    ]
    assert headings[5:7] == ["## All findings", f"### {CLAIM.topic}"]
    assert "1 holds and is specific to training, 1 does not hold, 1 was not tested." in text
    assert "**A head does it.** (holds)" in text and "**Nothing | of it.** (does not hold)" in text
    assert "`bertology report mini --full`" in text and f"`{CLAIM.id}` · Clark et al. 2019" in text
    assert "## Further analyses" in text and "message" in text.split("## Methods")[1]


def test_long_tables_are_cut() -> None:
    text = as_markdown(content(section(result(HeadGrid(**measures_and_baselines(4, 4))))))
    assert "First 40 of 80 rows; all rows are in the JSON." in text


def test_json_has_everything() -> None:
    texts = ExampleTexts(
        ("a", "b"), (TextMeasurement("Yes.", (0.9, 0.1), 0),), (TextMeasurement("No.", (0.2, 0.1), 1),), 16, 356, RUN
    )
    report = content(
        section(RESULT),
        claim_results=[CLAIM_RESULT],
        example_texts={CLAIM.id: texts},
        not_run=[SLOW],
        elapsed={"a": 1.0},
        passes=[ForwardPass("mini", "english")],
    )
    record = json.loads(as_json(report))
    assert list(record) == [
        "title", "messages", "summary", "untested", "fine_tuning", "claims", "examples", "results",
    ]  # fmt: skip
    assert record["claims"] == [CLAIM_RESULT.as_record()] and record["results"][0]["analysis"] == RESULT.analysis
    assert record["examples"][CLAIM.id]["weakest"][0]["text"] == "No." and record["untested"] == [SLOW.id]


def test_a_claim_is_a_record() -> None:
    record = CLAIM_RESULT.as_record()
    assert (
        record["verdict"] == "fails" and record["answer"] == "Not tested. A | b." and record["claim"] == CLAIM.statement
    )
    assert list(record)[:5] == ["id", "topic", "headline", "claim", "paper"] and record["models"] == ["mini"]
