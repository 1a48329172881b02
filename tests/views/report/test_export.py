"""Reports as Markdown and JSON say what the page says."""

from __future__ import annotations

import json

from bertology.analyses.run import ForwardPass
from bertology.claims.example_texts import ExampleTexts, TextMeasurement
from bertology.claims.run import ClaimResult
from bertology.claims.verdict import Verdict
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.views.report.export import as_json, as_markdown
from results.example_results import measures_and_baselines, result
from views.report.example_content import CLAIM, content, section

RESULT = result(LayerCurve(**measures_and_baselines(2)))
CLAIM_RESULT = ClaimResult(CLAIM, Verdict("fails", obstacle="a | b"), (RESULT,), ("mini",))
PASS = ForwardPass("mini", "english")


def test_markdown_has_claims_sections_and_methods() -> None:
    text = as_markdown(content(section(RESULT), messages=["message"], claim_results=[CLAIM_RESULT], passes=[PASS]))
    assert text.startswith("# title\n\nmessage\n\n## Claims") and f"### {CLAIM.topic}" in text
    assert f"**{CLAIM.denial}** (fails)  \nNot tested. A | b.  \n`{CLAIM.id}` · mini · Clark et al. 2019" in text
    assert "## Further analyses" in text
    assert "1 forward pass over corpora: english by mini." in text and "Clark et al. 2019" in text


def test_long_tables_are_cut() -> None:
    text = as_markdown(content(section(result(HeadGrid(**measures_and_baselines(4, 4))))))
    assert "First 40 of 80 rows; all rows are in the JSON." in text


def test_json_has_everything() -> None:
    texts = ExampleTexts(
        ("a", "b"), (TextMeasurement("Yes.", (0.9, 0.1)),), (TextMeasurement("No.", (0.2, 0.1)),), 16, 356
    )
    report = content(
        section(RESULT),
        claim_results=[CLAIM_RESULT],
        example_texts={CLAIM.id: texts},
        not_run=["slow"],
        elapsed={"a": 1.0},
        passes=[PASS, PASS],
    )
    record = json.loads(as_json(report))
    assert record["forward_passes"] == [{"model": "mini", "corpus": "english", "passes": 2}]
    assert list(record) == [
        "title", "messages", "summary", "forward_passes", "seconds", "untested", "fine_tuning", "claims", "examples",
        "results",
    ]  # fmt: skip
    assert record["claims"] == [CLAIM_RESULT.as_record()] and record["results"][0]["analysis"] == RESULT.analysis
    assert record["examples"][CLAIM.id]["weakest"][0]["text"] == "No." and record["untested"] == ["slow"]


def test_a_claim_is_a_record() -> None:
    record = CLAIM_RESULT.as_record()
    assert (
        record["verdict"] == "fails" and record["answer"] == "Not tested. A | b." and record["claim"] == CLAIM.statement
    )
    assert list(record)[:5] == ["id", "topic", "headline", "claim", "paper"] and record["models"] == ["mini"]
