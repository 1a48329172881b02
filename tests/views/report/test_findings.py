"""Findings: the status of each verdict, which ones open the page, and why others could not be judged."""

from __future__ import annotations

import pytest

from bertology.claims.catalogue import all_claims
from bertology.claims.claim import TOPICS, Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.verdict import FewExamples, LearningProbe, Specificity, Verdict
from bertology.views.report.findings import (
    MAX_HEADLINES,
    STATUSES,
    Finding,
    Status,
    findings_by_topic,
    headline_findings,
    headline_rule,
    other_numbers,
    surprising_findings,
    tally,
    unjudged_reasons,
)
from views.report.example_content import CLAIM, estimate, measured

LEARNING = LearningProbe(measured().verdict.comparisons[0].value, estimate(0.05), 500, "sentences", 100)


def claim(id: str, topic: str = TOPICS[0], **fields: object) -> Claim:
    return CLAIM.model_copy(update={"id": id, "topic": topic, "unit": "percent", "published": None, **fields})


def finding(id: str, value: float = 0.8, *, specificity: Specificity | None = "specific", **fields: object) -> Finding:
    result = measured(claim(id, **fields), value, specificity=specificity)  # pyright: ignore[reportArgumentType]
    return Finding(result.claim, result)


@pytest.mark.parametrize(
    ("specificity", "status"),
    [
        ("specific", "specific"),
        ("stronger", "specific"),
        ("earned too", "unspecific"),
        ("undecided", "uncontrolled"),
        ("not measured", "uncontrolled"),
        (None, "uncontrolled"),
    ],
)
def test_the_status_of_a_finding_that_holds_is_its_relation_to_the_control(
    specificity: Specificity | None, status: Status
) -> None:
    assert finding("a", specificity=specificity).status == status


def test_the_status_of_other_verdicts() -> None:
    assert finding("fails", 0.1).status == "fails" and finding("close", 0.41).status == "undecided"
    assert Finding(CLAIM).status == "not-tested"
    assert Finding(CLAIM, ClaimResult(CLAIM, Verdict("not applicable", obstacle="why"), ())).status == "not-tested"


def test_a_tally_counts_every_finding_once() -> None:
    findings = [finding("a"), finding("b"), finding("c", 0.1), Finding(CLAIM)]
    assert tally(findings) == {"specific": 2, "fails": 1, "not-tested": 1}
    assert list(tally(findings)) == [status for status in STATUSES if status in tally(findings)]


def test_one_headline_per_topic_the_most_prominent_first() -> None:
    findings = [
        finding("weak", 0.6, topic=TOPICS[0]),
        finding("strong", 0.9, topic=TOPICS[0]),
        finding("other", 0.7, topic=TOPICS[1]),
        finding("untrained too", 0.95, topic=TOPICS[2], specificity="earned too"),
    ]
    headlines, deviating = headline_findings(findings)
    # The second of a topic only fills what the topics leave; a finding that is not specific is no headline.
    assert [f.claim.id for f in headlines] == ["strong", "other", "weak"] and deviating is None


def test_numbers_on_the_scale_of_shares_come_first() -> None:
    findings = [finding("nats", 3.0, unit="nats", topic=TOPICS[0]), finding("share", 0.5, topic=TOPICS[0])]
    assert [f.claim.id for f in headline_findings(findings)[0]] == ["share", "nats"]


def test_headlines_are_few_and_never_empty_if_something_holds() -> None:
    assert len(headline_findings([finding(str(i)) for i in range(20)])[0]) == MAX_HEADLINES
    unspecific = [finding("a", specificity="earned too")]
    assert headline_findings(unspecific)[0] == unspecific and headline_findings([]) == ([], None)
    assert headline_rule(unspecific).startswith("No finding is known to be specific to training here")
    assert headline_rule([*unspecific, finding("b")]).startswith("Chosen by rule")


def test_the_largest_difference_from_the_published_number_is_the_first_surprise() -> None:
    near, far = finding("near", 0.1, published=0.2), finding("far", 0.1, published=(0.7, 0.9))
    unknown = finding("unknown", 0.1)
    assert surprising_findings([unknown, near, finding("holds"), far]) == [far, near, unknown]
    assert headline_findings([near, far])[1] is far


def test_findings_that_hold_with_another_number_are_named() -> None:
    far, near = finding("far", 0.9, published=0.5), finding("near", 0.9, published=0.88)
    assert other_numbers([near, far, finding("fails", 0.1, published=0.9)]) == [far]


def test_findings_are_grouped_by_topic_and_untested_ones_stand_last() -> None:
    untested = Finding(claim("untested", TOPICS[1]))
    groups = findings_by_topic([untested, finding("b", topic=TOPICS[1]), finding("a", topic=TOPICS[0])])
    assert list(groups) == [TOPICS[0], TOPICS[1]]
    assert [f.claim.id for f in groups[TOPICS[1]]] == ["b", "untested"]


def test_reasons_are_counted() -> None:
    trees = next(c for c in all_claims() if c.requirements == ("dependency trees",))
    findings = [
        finding("close", 0.41),
        finding("also close", 0.4),
        Finding(
            trees, ClaimResult(trees, Verdict("not applicable", obstacle="no trees", lacking="dependency trees"), ())
        ),
        Finding(CLAIM),
        finding("holds"),
    ]
    assert {reason: len(group) for reason, group in unjudged_reasons(findings).items()} == {
        "with an interval that reaches to both sides of what is required": 2,
        "not tested without dependency trees": 1,
        "left for --full: takes minutes": 1,
    }
    comparisons = measured(claim("x"), 0.41).verdict.comparisons
    for caveat, text in ((FewExamples(4, 10), "too few examples"), (LEARNING, "still learns from more text")):
        verdict = Verdict("inconclusive", comparisons, caveats=(caveat,))
        (reason,) = unjudged_reasons([Finding(CLAIM, ClaimResult(CLAIM, verdict, ()))])
        assert text in reason
