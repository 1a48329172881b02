"""The report page's drawings: one mark a number, a cross for a gap, and no figure that needs another package."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.claims.examine import Finding
from bertology.claims.judge import OUTCOMES, Verdict
from bertology.claims.shelf import all_claims
from bertology.report.page import Section, page
from bertology.results.estimate import Estimates
from bertology.results.figures import head_grid, layer_curve
from bertology.results.shapes import HeadGrid, LayerCurve
from drawn import estimates, measured, result

CLAIM = next(claim for claim in all_claims() if claim.paper == "clark2019")
NOTHING = Estimates.exact(np.full((2, 3), np.nan))


def test_a_grid_has_a_cell_a_head_and_a_cross_a_gap() -> None:
    drawn = head_grid("m", estimates(3, 4), {"chance": estimates(3, 4, gap=False)})
    assert drawn.count("<rect") == 11 and drawn.count("×") == 1
    assert "head 1-2: nothing to measure" in drawn and "chance: 0.255 [0.205, 0.305]" not in drawn


def test_no_line_runs_through_a_gap() -> None:
    value = np.array([0.1, 0.2, np.nan, 0.3, 0.4])
    gappy = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=np.full(5, 3))
    drawn = layer_curve("m", gappy, {"chance": estimates(5)}, first=1)
    assert drawn.count('class="curve"') == drawn.count('class="band"') == 2
    assert drawn.count("<circle") == 4 and "layer 3: nothing to measure" in drawn and "nan" not in drawn


@pytest.mark.parametrize(
    "shape",
    [
        HeadGrid(**measured(2, 3)),
        HeadGrid(measures={"m": NOTHING}, baselines={"b": {"m": NOTHING}}),
        LayerCurve(measures={"m": NOTHING[0]}, baselines={"b": {"m": NOTHING[0]}}),
        LayerCurve(**measured(2)),
    ],
    ids=["grid", "empty grid", "empty curve", "curve"],
)
def test_a_page_copes_with_gaps(shape: HeadGrid | LayerCurve) -> None:
    html = page("title", [], [], [Section("What?", "about", result(shape))])
    assert "<svg" in html and "nothing to measure" in html and '"nan"' not in html


def test_the_scoreboard_shows_every_verdict_with_its_numbers_and_its_paper() -> None:
    shown = result(LayerCurve(**measured(2)))
    findings = [
        Finding(CLAIM.model_copy(update={"id": outcome}), Verdict(outcome, f"why <{outcome}>"), (shown,))
        for outcome in OUTCOMES
    ]
    html = page("title", [], findings, [Section("What?", "about", shown)])
    assert "4 published findings: 1 holds, 1 fails, 1 inconclusive, 1 not applicable." in html
    for outcome in OUTCOMES:
        assert f"why &lt;{outcome}&gt;" in html
    assert html.count(f'<a href="#{shown.analysis}">') == 4 and f'id="{shown.analysis}"' in html
    assert html.count("What Does BERT Look At?") == 1
