"""The first lines of an intervention: score before, highest and lowest costs, and what stands out."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.estimates.estimate import Estimates
from bertology.results.headline import format_p, headline, removals
from bertology.results.measured_shape import CostMeasures, ReferenceScore, RemovalCosts
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, RemovalOrder

LOSSES = np.array([[0.5, 0.0, -0.2, 0.1], [0.05, 0.3, 0.02, -0.01]])


def with_interval(value: object, n: int = 40) -> Estimates:
    array = np.asarray(value, np.float64)
    return Estimates(value=array, low=array - 0.05, high=array + 0.05, n=np.full(array.shape, n))


def reference(score: float) -> ReferenceScore:
    return ReferenceScore(
        name="the intact model",
        baseline="majority class",
        metric="accuracy",
        score=with_interval(score),
        baseline_score=with_interval(0.5),
        difference=with_interval(score - 0.5),
    )


def costs(part: str, *operations: str) -> RemovalCosts:
    measures = {name: CostMeasures(loss="loss", score="score", p_value="p") for name in operations}
    return RemovalCosts(part=part, metric="accuracy", operations=measures)


def grid(p: object, score: float = 0.9) -> HeadGrid:
    measures = {"loss": with_interval(LOSSES), "score": with_interval(-LOSSES), "p": Estimates.exact(np.asarray(p))}
    return HeadGrid(
        measures=measures,
        baselines={"zero": {"loss": Estimates.exact(np.zeros((2, 4)))}},
        units={"loss": "nats"},
        reference=reference(score),
        costs=costs("head", ""),
        lowest=("score", "p"),
    )


def test_heads_are_ordered_by_what_their_removal_costs() -> None:
    score, highest, lowest, outstanding = headline(grid(np.ones((2, 4))))
    assert score == "Accuracy of the intact model: 0.9 [0.85, 0.95] (n = 40); majority class: 0.5 [0.45, 0.55]."
    first = (
        "Highest cost (change in loss, nats): 1-1 (+0.5 [0.45, 0.55], p = 1; accuracy -0.5 [-0.55, -0.45]); 2-2 (+0.3"
    )
    assert highest.startswith(first) and "; 1-4 (+0.1" in highest
    assert lowest.startswith("Lowest cost: 1-3 (-0.2") and "; 2-4 (-0.01" in lowest and "; 1-2 (0 [" in lowest
    assert outstanding == "No head stands out after Holm's correction for 8 comparisons (p < 0.05)."


def test_what_stands_out_is_needed_or_does_harm() -> None:
    p = np.ones((2, 4))
    p[0, 0], p[1, 1], p[0, 2] = 0.0001, 0.04, 0.01
    outstanding = headline(grid(p))[-1]
    assert outstanding.startswith("After Holm's correction for 8 comparisons")
    assert outstanding.endswith("needed: 1-1, 2-2; better without: 1-3.")
    p[0, 2] = 1
    assert headline(grid(p))[-1].endswith("better without: none.")


def test_a_model_at_its_baseline_is_said_first() -> None:
    lines = headline(grid(np.ones((2, 4)), score=0.48))
    assert lines[0].startswith("Nothing learnt that could be lost") and lines[1].startswith("Accuracy of")
    lines = headline(grid(np.ones((2, 4)), score=0.52))
    assert lines[0].startswith("Nothing learnt for certain") and "not distinguishable from" in lines[0]


def test_operations_and_layers_have_names_and_few_of_them_are_listed_once() -> None:
    values = with_interval([0.3, np.nan])
    curve = LayerCurve(
        measures={"loss": values, "score": values, "p": Estimates.exact(np.array([0.2, np.nan]))},
        baselines={"zero": {"loss": Estimates.exact(np.zeros(2))}},
        costs=costs("layer", "swap"),
        first_layer=1,
    )
    assert [removal.name for removal in removals(curve)] == ["swap layer 1"]
    highest, outstanding = headline(curve)
    assert highest.startswith("Highest cost (change in loss): swap layer 1 (")
    assert outstanding == "No layer stands out after Holm's correction for 1 comparison (p < 0.05)."


def test_orders_of_removal_name_the_first_and_the_last_heads() -> None:
    heads = tuple(f"1-{head}" for head in range(1, 9))
    order = RemovalOrder(name="gradient", heads=heads, values={}, n_removed=5, criterion="at most 1 point")
    score = with_interval([0.9, 0.8])
    curve = Curve(
        x_name="heads left",
        x=np.array([8.0, 3.0]),
        measures={"score": score},
        baselines={"all heads": {"score": score}},
        reference=reference(0.9),
        removal_orders=(order,),
    )
    first, second = headline(curve)
    assert first.startswith("Accuracy of the intact model: 0.9")
    expected = "first to go 1-1, 1-2, 1-3; last 1-8, 1-7, 1-6; 5 of 8 heads can go (at most 1 point)."
    assert second == f"Order by gradient: {expected}"


def test_a_result_shows_its_headline_in_python_and_keeps_it_in_json() -> None:
    data = grid(np.ones((2, 4)))
    result = Result(analysis="a", version=1, options={}, inputs={}, n=40, data=data, provenance={})
    first, *others = repr(result).splitlines()
    assert first == "a: HeadGrid, 2 layers x 4 heads, n = 40"
    assert others == headline(data)[:2]  # three lines at most; all are in headline()
    restored = Result.from_json(result.to_json())
    assert restored.headline() == result.headline()
    plain = data.model_copy(update={"reference": None, "costs": None, "lowest": ()})
    stored = result.model_copy(update={"data": plain})
    assert stored.headline() == [] and not {"reference", "costs", "lowest"} & stored.to_json()["data"].keys()


@pytest.mark.parametrize(("p", "text"), [(1.0, "p = 1"), (0.0123, "p = 0.012"), (0.0002, "p < 0.001")])
def test_p_values_are_short(p: float, text: str) -> None:
    assert format_p(p) == text


def test_the_lowest_head_stands_out_where_that_is_declared() -> None:
    data = grid(np.ones((2, 4)))
    assert str(data.extreme_head("score")) == str(data.extreme_head("loss")) == "1-1"
    assert data.extreme_head("p") is None  # all equal
