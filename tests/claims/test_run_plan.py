"""The analyses that claims need, with the options they are given."""

from __future__ import annotations

from bertology.claims.claim import ClaimRun
from bertology.claims.run_plan import declared_analyses


def test_overflow_is_passed_on_to_analyses_that_evaluate_whole_examples() -> None:
    runs = {name: ClaimRun(analysis=name) for name in ("interventions/attacks", "attention/entropy")}
    requests, refusals = declared_analyses(runs, "truncate")
    assert not refusals
    assert {name: options for name, (_, options) in requests.items()} == {
        "interventions/attacks": {"overflow": "truncate"},
        "attention/entropy": {},
    }
    requests, _ = declared_analyses(runs, None)
    assert not any(options for _, options in requests.values())
