"""Claims over results that are made by hand: each can hold, fail, and be undecided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.claims.claim import Claim, all_claims
from bertology.claims.judge import Verdict, judge
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Table


def claim(name: str) -> Claim:
    return next(one for one in all_claims() if one.id == name)


def result(data: Any) -> Result:
    return Result(analysis="a/b", version=1, options={}, inputs={}, n=9, data=data, provenance={})


def verdict(name: str, data: Any) -> Verdict:
    return judge(claim(name), {"": result(data)})


def around(values: Any, half: float) -> Estimates:
    array = np.asarray(values, float)
    return Estimates(value=array, low=array - half, high=array + half, n=np.full(array.shape, 9))


def agreement(layers: list[float], half: float) -> Table:
    """The masked LM, the embeddings, then the layers, as probes/subject_verb_agreement has them."""
    rows = ("masked LM", *(f"layer {layer}" for layer in range(len(layers) + 1)))
    measures = {"accuracy (1 attractor)": around([1.0, 0.5, *layers], half)}
    attributes = {"layer": (None, *range(len(layers) + 1))}
    return Table(row_names=rows, measures=measures, baselines={"majority class": measures}, attributes=attributes)


HILL = [0.4, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.8, 0.7, 0.6]


@pytest.mark.parametrize(
    ("layers", "half", "outcome"),
    [
        (HILL, 0.01, "holds"),
        (HILL[::-1], 0.01, "fails"),
        (HILL, 0.2, "inconclusive"),
        ([0.5, 0.5, 0.6, 0.7, 0.9, 0.9, 0.9, 0.6], 0.01, "holds"),
        ([0.5, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7, 0.9], 0.01, "fails"),
    ],
    ids=["holds", "fails", "inconclusive", "eight layers", "eight layers, rising"],
)
def test_agreement_is_judged_by_the_layers_of_a_table(layers: list[float], half: float, outcome: str) -> None:
    found = verdict("agreement-in-the-upper-middle", agreement(layers, half))
    assert found.outcome == outcome
    inside = "7-10" if len(layers) == 12 else "5-7"
    assert f"of layers {inside} is" in found.reason


def test_the_masked_lm_is_no_layer() -> None:
    """Its score of 1 would be the peak wherever it was counted."""
    assert "1 [" not in verdict("agreement-in-the-upper-middle", agreement(HILL, 0.01)).reason


def test_a_table_without_layers_is_not_applicable() -> None:
    measures = {"accuracy (1 attractor)": around([1.0, 0.5], 0.1)}
    data = Table(row_names=("masked LM", "layer 1 to 3"), measures=measures, baselines={"majority class": measures})
    found = verdict("agreement-in-the-upper-middle", data)
    assert found.outcome == "not applicable"
    assert "no row of the table is a layer" in found.reason and "a mask token" in found.reason


def gaps(values: list[float], half: float) -> Curve:
    shrinks = around(np.array(values) - values[-1], half)
    measures = {"model - static": around(values, half), "reduction of (model - static) with full data": shrinks}
    nothing = {"zero": dict.fromkeys(measures, around(np.zeros(len(values)), 0))}
    points = np.array([14.0, 56.0, 225.0])
    return Curve(x_name="training examples", x=points, measures=measures, baselines=nothing)


@pytest.mark.parametrize(
    ("values", "half", "closes", "near"),
    [
        ([0.3, 0.1, 0.05], 0.02, "holds", "holds"),
        ([0.0, 0.1, 0.3], 0.02, "fails", "fails"),
        ([0.1, 0.0, 0.09], 0.02, "inconclusive", "inconclusive"),
        ([0.3, 0.2, 0.15], 0.02, "holds", "fails"),
    ],
)
def test_the_gap_closes_from_the_smallest_size_to_the_largest(
    values: list[float], half: float, closes: str, near: str
) -> None:
    data = gaps(values, half)
    found = verdict("more-data-closes-the-gap", data)
    assert found.outcome == closes and "at 14 training examples" in found.reason
    assert verdict("static-near-on-simple-tasks", data).outcome == near


@pytest.mark.parametrize(("lead", "outcome"), [(0.05, "holds"), (-0.05, "fails"), (0.01, "inconclusive")])
def test_context_leads_on_the_same_names(lead: float, outcome: str) -> None:
    """The scores' own intervals overlap throughout; what decides is how far one leads on the same items."""
    measures = {"score (linear)": around([0.6, 0.6 - lead], 0.1), "model - feature (linear)": around([0.0, lead], 0.02)}
    data = Table(row_names=("model", "static"), measures=measures, baselines={"zero": measures})
    assert verdict("context-helps-names", data).outcome == outcome


@pytest.mark.parametrize(("lead", "outcome"), [(0.1, "holds"), (-0.1, "fails"), (0.01, "inconclusive")])
def test_training_without_order_is_compared_with_a_guess_at_the_same_questions(lead: float, outcome: str) -> None:
    score = {"score": around([0.5, 0.3 + lead], 0.2), "score - majority class": around([0.2, lead], 0.02)}
    beside = {"majority class": {"score": around([0.3, 0.3], 0.1)}}
    found = verdict(
        "unanswerable-training-works", Table(row_names=("uncorrupted", "P-Shuffle"), measures=score, baselines=beside)
    )
    assert found.outcome == outcome and "majority class 0.3 [0.2, 0.4], difference" in found.reason


@pytest.mark.parametrize(("apart", "outcome"), [(0.05, "holds"), (-0.05, "fails"), (0.001, "inconclusive")])
def test_heads_of_a_layer_are_compared_on_the_same_texts(apart: float, outcome: str) -> None:
    measures = {"between - within": around([apart], 0.002)}
    data = Table(row_names=("all layers",), measures=measures, baselines={"shuffled layers": measures})
    assert verdict("heads-of-a-layer-cluster", data).outcome == outcome


def attacks(drop: float, score: float, half: float, before: float = 0.8) -> Table:
    rows = ("Sent2Opt-Shuffle", "AddAns2Opt-Shuffle")
    measures = {"score drop": around([drop, 0.0], half), "score under attack": around([0.8 - drop, score], half)}
    return Table(
        row_names=rows,
        measures=measures,
        baselines={
            "clean input": {"score under attack": around([before, before], half)},
            "majority class": {"score under attack": around([0.3, 0.3], half)},
            "random edits (same amount)": measures,
        },
    )


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (attacks(0.3, 0.8, 0.05), "holds"),
        (attacks(-0.1, 0.3, 0.04), "fails"),
        (attacks(0.02, 0.45, 0.05), "inconclusive"),
    ],
    ids=("holds", "fails", "inconclusive"),
)
def test_options_that_nobody_can_read(data: Table, outcome: str) -> None:
    assert verdict("unreadable-options-mislead", data).outcome == outcome
    assert verdict("unreadable-answers-hurt-little", data).outcome == outcome


@pytest.mark.parametrize("before", [0.3, 0.35])
def test_what_must_be_given_first_decides_whether_a_finding_can_be_asked(before: float) -> None:
    """A drop says nothing where there was nothing to lose, and a score nothing about what was kept."""
    for name in ("unreadable-options-mislead", "unreadable-answers-hurt-little"):
        found = verdict(name, attacks(0.3, 0.8, 0.05, before))
        assert found.outcome == "not applicable"
        assert "clean input" in found.reason and "fine-tuned for multiple choice" in found.reason


def peaking(layer: int, half: float) -> Result:
    values = {"accuracy": around([0.9 if place == layer else 0.5 for place in range(13)], half)}
    return result(LayerCurve(measures=values, baselines={"majority class": values}))


@pytest.mark.parametrize(
    ("syntax", "meaning", "half", "outcome"),
    [(9, 12, 0.05, "holds"), (12, 9, 0.05, "fails"), (9, 12, 0.3, "inconclusive")],
)
def test_syntax_peaks_before_meaning(syntax: int, meaning: int, half: float, outcome: str) -> None:
    found: dict[str, Result | Refusal] = {"bigram shift": peaking(syntax, half), "odd man out": peaking(meaning, half)}
    assert judge(claim("syntax-before-meaning"), found).outcome == outcome


@pytest.mark.parametrize(
    ("best", "others", "outcome"), [(0.05, -0.1, "holds"), (-0.05, -0.1, "fails"), (0.005, -0.1, "inconclusive")]
)
def test_a_model_that_is_better_off_without_one_head(best: float, others: float, outcome: str) -> None:
    grid = np.full((12, 12), others)
    grid[4, 7] = best
    values = {"change in score": around(grid, 0.01)}
    found = verdict("better-without-some-head", HeadGrid(measures=values, baselines={"layer": values}))
    assert found.outcome == outcome and "head 5-8" in found.reason


def apart(measure: str, along: str, points: list[float], values: list[float], half: float) -> Curve:
    measures = {measure: around(values, half)}
    zero = {"zero": {measure: around(np.zeros(len(values)), 0)}}
    return Curve(x_name=along, x=np.array(points), measures=measures, baselines=zero)


@pytest.mark.parametrize(
    ("changes", "half", "outcome"),
    [
        ([0.0, 0.01, -0.4], 0.02, "holds"),
        ([0.0, -0.2, -0.4], 0.02, "fails"),
        ([0.0, -0.04, -0.4], 0.02, "inconclusive"),
    ],
)
def test_a_fifth_of_the_heads_can_go(changes: list[float], half: float, outcome: str) -> None:
    data = apart("change in score (gradient)", "heads left", [64, 51, 0], changes, half)
    found = verdict("heads-can-be-pruned", data)
    assert found.outcome == outcome and "at 51 heads left" in found.reason


@pytest.mark.parametrize(
    ("changes", "half", "outcome"),
    [
        ([0.0, -0.01, -0.3], 0.02, "holds"),
        ([0.0, -0.12, -0.3], 0.02, "fails"),
        ([0.0, -0.04, -0.3], 0.02, "inconclusive"),
    ],
)
def test_two_thirds_of_the_layers_can_stay_frozen(changes: list[float], half: float, outcome: str) -> None:
    found = verdict(
        "freezing-two-thirds", apart("change in score (first k layers frozen)", "layers", [0, 8, 12], changes, half)
    )
    assert (
        found.outcome == outcome and "at 8 layers" in found.reason and "needs more than -0.05 (n = 9)" in found.reason
    )


@pytest.mark.parametrize(("lead", "outcome"), [(0.1, "holds"), (-0.1, "fails"), (0.01, "inconclusive")])
def test_gradients_choose_better_than_random_orders(lead: float, outcome: str) -> None:
    data = apart("score (gradient) - score (random)", "heads left", [64, 32, 0], [0.0, lead, 0.0], 0.02)
    assert verdict("gradients-choose-better-than-chance", data).outcome == outcome


@pytest.mark.parametrize(
    ("difference", "outcome"),
    [(-0.005, "holds"), (-0.06, "fails"), (-0.035, "inconclusive"), (np.nan, "not applicable")],
)
def test_rank_64_is_compared_with_the_full_rank(difference: float, outcome: str) -> None:
    data = apart("UUAS - UUAS (full rank)", "rank", [32, 64, 128], [-0.1, difference, np.nan], 0.01)
    assert verdict("rank-64-suffices", data).outcome == outcome


def test_a_model_of_64_dimensions_has_no_higher_rank() -> None:
    found = verdict("rank-64-suffices", apart("UUAS - UUAS (full rank)", "rank", [32, 64], [-0.1, np.nan], 0.01))
    assert found.outcome == "not applicable" and "hidden size above 64" in found.reason
