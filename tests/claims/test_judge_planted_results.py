"""Claims of the catalogue on planted results: each can hold, fail and be inconclusive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.claims.answer import write_answer
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import Claim
from bertology.claims.judge import judge
from bertology.claims.verdict import Verdict
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.measured_shape import ReferenceScore
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Table


def claim(name: str) -> Claim:
    return next(claim for claim in all_claims() if claim.id == name)


def result(data: Any) -> Result:
    return Result(analysis="a/b", version=1, options={}, inputs={}, n=9, data=data, provenance={})


def judge_data(name: str, data: Any) -> Verdict:
    return judge(claim(name), {"": result(data)})


def estimates(values: Any, half: float) -> Estimates:
    array = np.asarray(values, float)
    return Estimates(value=array, low=array - half, high=array + half, n=np.full(array.shape, 90))


def agreement(layers: list[float], half: float) -> Table:
    """A result of probes/subject_verb_agreement: rows for the masked LM, the embeddings and the layers."""
    rows = ("masked LM", *(f"layer {layer}" for layer in range(len(layers) + 1)))
    measures = {"accuracy (1 attractor)": estimates([1.0, 0.5, *layers], half)}
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
def test_agreement_is_compared_between_the_layers_of_a_table(layers: list[float], half: float, outcome: str) -> None:
    verdict = judge_data("agreement-in-the-upper-middle", agreement(layers, half))
    assert verdict.outcome == outcome
    upper_middle = (7, 8, 9, 10) if len(layers) == 12 else (5, 6, 7)
    assert verdict.comparisons[0].value.searched_layers == upper_middle


def test_the_row_of_the_masked_lm_is_not_a_layer() -> None:
    """Its score of 1 would be the peak."""
    (comparison,) = judge_data("agreement-in-the-upper-middle", agreement(HILL, 0.01)).comparisons
    assert comparison.value.estimate.value == 0.9


def test_a_table_without_layers_is_not_applicable() -> None:
    measures = {"accuracy (1 attractor)": estimates([1.0, 0.5], 0.1)}
    data = Table(row_names=("masked LM", "layer 1 to 3"), measures=measures, baselines={"majority class": measures})
    verdict = judge_data("agreement-in-the-upper-middle", data)
    assert verdict.outcome == "not applicable"
    assert "no row of the table is a layer" in verdict.obstacle and "a mask token" in verdict.obstacle


def gain_by_train_size(values: list[float], half: float) -> Curve:
    """Gains of the model over static vectors, for three training sizes."""
    reductions = estimates(np.array(values) - values[-1], half)
    measures = {"model - static": estimates(values, half), "reduction of (model - static) with full data": reductions}
    baselines = {"zero": dict.fromkeys(measures, estimates(np.zeros(len(values)), 0))}
    sizes = np.array([14.0, 56.0, 225.0])
    return Curve(x_name="training examples", x=sizes, measures=measures, baselines=baselines)


@pytest.mark.parametrize(
    ("values", "half", "gap_closes", "static_is_near"),
    [
        ([0.3, 0.1, 0.05], 0.02, "holds", "holds"),
        ([0.0, 0.1, 0.3], 0.02, "fails", "fails"),
        ([0.1, 0.0, 0.09], 0.02, "inconclusive", "inconclusive"),
        ([0.3, 0.2, 0.15], 0.02, "holds", "fails"),
    ],
)
def test_the_gap_is_compared_between_smallest_and_largest_training_size(
    values: list[float], half: float, gap_closes: str, static_is_near: str
) -> None:
    data = gain_by_train_size(values, half)
    verdict = judge_data("more-data-closes-the-gap", data)
    assert verdict.outcome == gap_closes and verdict.comparisons[0].value.x == 14
    assert judge_data("static-near-on-simple-tasks", data).outcome == static_is_near


@pytest.mark.parametrize(("lead", "outcome"), [(0.05, "holds"), (-0.05, "fails"), (0.01, "inconclusive")])
def test_features_are_compared_on_the_same_entities(lead: float, outcome: str) -> None:
    """The separate intervals of the scores overlap; the paired difference decides."""
    measures = {
        "score (linear)": estimates([0.6, 0.6 - lead], 0.1),
        "model - feature (linear)": estimates([0.0, lead], 0.02),
    }
    data = Table(row_names=("model", "static"), measures=measures, baselines={"zero": measures})
    assert judge_data("context-helps-names", data).outcome == outcome


@pytest.mark.parametrize(("lead", "outcome"), [(0.1, "holds"), (-0.1, "fails"), (0.01, "inconclusive")])
def test_training_on_shuffled_passages_is_compared_with_the_majority_class(lead: float, outcome: str) -> None:
    score = {"score": estimates([0.5, 0.3 + lead], 0.2), "score - majority class": estimates([0.2, lead], 0.02)}
    baselines = {"majority class": {"score": estimates([0.3, 0.3], 0.1)}}
    verdict = judge_data(
        "unanswerable-training-works",
        Table(row_names=("uncorrupted", "P-Shuffle"), measures=score, baselines=baselines),
    )
    answer = write_answer(claim("unanswerable-training-works"), verdict)
    assert verdict.outcome == outcome and "is right for 30 % [20, 40]. The difference is " in answer


@pytest.mark.parametrize(("difference", "outcome"), [(0.05, "holds"), (-0.05, "fails"), (0.001, "inconclusive")])
def test_distances_of_heads_are_compared_on_the_same_texts(difference: float, outcome: str) -> None:
    measures = {"between - within": estimates([difference], 0.002)}
    data = Table(row_names=("all layers",), measures=measures, baselines={"shuffled layers": measures})
    assert judge_data("heads-of-a-layer-cluster", data).outcome == outcome


def attacks(drop: float, drop_with_answers: float, half: float, clean: float = 0.8) -> Table:
    rows, drops = ("Sent2Opt-Shuffle", "AddAns2Opt-Shuffle"), np.array([drop, drop_with_answers])
    measures = {"score drop": estimates(drops, half), "score under attack": estimates(0.8 - drops, half)}
    return Table(
        row_names=rows,
        measures=measures,
        baselines={
            "clean input": {"score under attack": estimates([clean, clean], half)},
            "majority class": {"score under attack": estimates([0.3, 0.3], half)},
            "random edits (same amount)": measures,
        },
    )


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (attacks(0.3, 0.0, 0.05), "holds"),
        (attacks(-0.1, 0.5, 0.04), "fails"),
        (attacks(0.02, 0.12, 0.05), "inconclusive"),
    ],
    ids=("holds", "fails", "inconclusive"),
)
def test_unreadable_options(data: Table, outcome: str) -> None:
    assert judge_data("unreadable-options-mislead", data).outcome == outcome
    assert judge_data("unreadable-answers-hurt-little", data).outcome == outcome


@pytest.mark.parametrize("clean", [0.3, 0.35])
def test_a_claim_whose_precondition_fails_is_not_applicable(clean: float) -> None:
    """A drop means nothing for a model that is no better than the majority class on clean input."""
    for name in ("unreadable-options-mislead", "unreadable-answers-hurt-little"):
        verdict = judge_data(name, attacks(0.3, 0.0, 0.05, clean))
        assert verdict.outcome == "not applicable"
        assert "clean input" in verdict.obstacle and "fine-tuned for multiple choice" in verdict.obstacle
        assert verdict.lacking == ""


def curve_with_peak(layer: int, half: float) -> Result:
    values = {"accuracy": estimates([0.9 if index == layer else 0.5 for index in range(13)], half)}
    return result(LayerCurve(measures=values, baselines={"majority class": values}))


@pytest.mark.parametrize(
    ("syntax", "meaning", "half", "outcome"),
    [(9, 12, 0.05, "holds"), (12, 9, 0.05, "fails"), (9, 12, 0.3, "inconclusive")],
)
def test_syntax_peaks_before_meaning(syntax: int, meaning: int, half: float, outcome: str) -> None:
    results: dict[str, Result | Refusal] = {
        "bigram shift": curve_with_peak(syntax, half),
        "odd man out": curve_with_peak(meaning, half),
    }
    assert judge(claim("syntax-before-meaning"), results).outcome == outcome


@pytest.mark.parametrize(
    ("best", "others", "outcome"), [(0.05, -0.1, "holds"), (-0.05, -0.1, "fails"), (0.005, -0.1, "inconclusive")]
)
def test_a_model_that_improves_without_a_head(best: float, others: float, outcome: str) -> None:
    grid = np.full((12, 12), others)
    grid[4, 7] = best
    values = {"change in score": estimates(grid, 0.01)}
    verdict = judge_data("better-without-some-head", HeadGrid(measures=values, baselines={"layer": values}))
    assert verdict.outcome == outcome and str(verdict.comparisons[0].value.head) == "5-8"


def curve(measure: str, x_name: str, x: list[float], values: list[float], half: float) -> Curve:
    measures = {measure: estimates(values, half)}
    zero = {"zero": {measure: estimates(np.zeros(len(values)), 0)}}
    return Curve(x_name=x_name, x=np.array(x), measures=measures, baselines=zero)


@pytest.mark.parametrize(
    ("changes", "half", "outcome"),
    [
        ([0.0, 0.01, -0.4], 0.02, "holds"),
        ([0.0, -0.2, -0.4], 0.02, "fails"),
        ([0.0, -0.04, -0.4], 0.02, "inconclusive"),
    ],
)
def test_a_fifth_of_the_heads_can_be_pruned(changes: list[float], half: float, outcome: str) -> None:
    data = curve("change in score (gradient)", "heads left", [64, 51, 0], changes, half)
    verdict = judge_data("heads-can-be-pruned", data)
    assert verdict.outcome == outcome and verdict.comparisons[0].value.x == 51


@pytest.mark.parametrize(
    ("changes", "half", "outcome"),
    [
        ([0.0, -0.01, -0.3], 0.02, "holds"),
        ([0.0, -0.12, -0.3], 0.02, "fails"),
        ([0.0, -0.04, -0.3], 0.02, "inconclusive"),
    ],
)
def test_two_thirds_of_the_layers_can_be_frozen(changes: list[float], half: float, outcome: str) -> None:
    verdict = judge_data(
        "freezing-two-thirds", curve("change in score (first k layers frozen)", "layers", [0, 8, 12], changes, half)
    )
    answer = write_answer(claim("freezing-two-thirds"), verdict)
    assert verdict.outcome == outcome and "With the first 8 layers frozen, accuracy changes by " in answer
    assert "over 90 sentences. The finding says a loss of less than 5 points." in answer


@pytest.mark.parametrize(("lead", "outcome"), [(0.1, "holds"), (-0.1, "fails"), (0.01, "inconclusive")])
def test_pruning_by_gradients_is_compared_with_random_orders(lead: float, outcome: str) -> None:
    data = curve("score (gradient) - score (random)", "heads left", [64, 32, 0], [0.0, lead, 0.0], 0.02)
    assert judge_data("gradients-choose-better-than-chance", data).outcome == outcome


@pytest.mark.parametrize(
    ("difference", "outcome"),
    [(-0.005, "holds"), (-0.06, "fails"), (-0.035, "inconclusive"), (np.nan, "not applicable")],
)
def test_rank_64_is_compared_with_full_rank(difference: float, outcome: str) -> None:
    data = curve("UUAS - UUAS (full rank)", "rank", [32, 64, 128], [-0.1, difference, np.nan], 0.01)
    assert judge_data("rank-64-suffices", data).outcome == outcome


def test_rank_64_is_not_compared_in_a_model_of_64_dimensions() -> None:
    verdict = judge_data("rank-64-suffices", curve("UUAS - UUAS (full rank)", "rank", [32, 64], [-0.1, np.nan], 0.01))
    assert verdict.outcome == "not applicable" and "hidden size above 64" in verdict.obstacle


def similarity(values: list[float], untrained: float = 0.15, half: float = 0.01, measure: str = "RSA") -> LayerCurve:
    """Similarity of a model and its fine-tuned version by layer, from the embeddings on."""
    baseline = {measure: estimates([untrained] * len(values), half)}
    return LayerCurve(
        measures={measure: estimates(values, half)}, baselines={"untrained model": baseline}, first_layer=0
    )


CONSERVATIVE = [1.0, 0.99, 0.97, 0.96, 0.94, 0.92, 0.8, 0.7, 0.6]


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (CONSERVATIVE, "holds"),
        ([*CONSERVATIVE[:-1], 0.16], "fails"),  # the mean of the last layers is far above the untrained model
        ([*CONSERVATIVE[:-1], 0.44], "inconclusive"),
        ([*CONSERVATIVE[:-1], 0.3], "fails"),  # more, but not far more
        ([1.0] * 9, "not applicable"),
    ],
    ids=["conservative", "the last layer is lost", "near the margin", "not far", "the same model"],
)
def test_fine_tuning_is_conservative_in_each_of_the_last_layers(values: list[float], outcome: str) -> None:
    verdict = judge_data("fine-tuning-is-conservative", similarity(values))
    assert verdict.outcome == outcome, verdict
    if outcome != "not applicable":
        assert [comparison.value.layers for comparison in verdict.comparisons] == [(6, 6), (7, 7), (8, 8)]


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (CONSERVATIVE, "holds"),
        ([1.0, 0.6, 0.97, 0.96, 0.94, 0.92, 0.8, 0.7, 0.5], "fails"),  # layer 1 changed more than layer 7
        ([1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.7, 0.5], "inconclusive"),
        ([1.0] * 9, "not applicable"),
    ],
    ids=["top", "a lower layer changed", "layer 6 as before", "the same model"],
)
def test_the_last_three_layers_change_more_than_each_of_the_lower_half(values: list[float], outcome: str) -> None:
    verdict = judge_data("top-layers-change-most", similarity(values, half=0.005))
    assert verdict.outcome == outcome, verdict


def test_the_embeddings_change_less_than_every_layer() -> None:
    assert judge_data("embeddings-change-least", similarity(CONSERVATIVE, half=0.001)).outcome == "holds"
    moved = [0.95, *CONSERVATIVE[1:]]
    assert judge_data("embeddings-change-least", similarity(moved, half=0.001)).outcome == "fails"
    assert judge_data("embeddings-change-least", similarity([1.0] * 9)).outcome == "not applicable"


PUBLISHED_COSINES = {
    "SST-2": [0.99, 0.93, 0.93, 0.89, 0.87, 0.93, 0.90, 0.86, 0.85, 0.78, 0.64, 0.66],
    "QQP": [0.94, 0.92, 0.87, 0.83, 0.76, 0.80, 0.78, 0.77, 0.71, 0.67, 0.64, 0.71],
}
"""Cosines of the attention before and after fine-tuning, by layer, read from figure 5 of Kovaleva et al. 2019."""


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([1 - cosine for cosine in PUBLISHED_COSINES["SST-2"]], "holds"),
        ([1 - cosine for cosine in PUBLISHED_COSINES["QQP"]], "fails"),  # layer 10 changed more than layer 12
        ([0.017, 0.018, 0.02, 0.038, 0.032, 0.035, 0.024, 0.04], "fails"),  # layer 7 lies behind 4, 5 and 6
        ([0.01, 0.02, 0.02, 0.06, 0.06, 0.06, 0.09, 0.13], "holds"),
        ([0.0] * 8, "not applicable"),
    ],
    ids=["SST-2", "QQP", "one of two", "eight layers", "the same model"],
)
def test_fine_tuning_changes_the_attention_of_the_last_two_layers_most(changes: list[float], outcome: str) -> None:
    measures = {"Jensen-Shannon divergence": estimates(changes, 0.0005)}
    data = LayerCurve(measures=measures, baselines={"untrained model": measures}, first_layer=1)
    verdict = judge_data("last-layers-attend-otherwise", data)
    assert verdict.outcome == outcome, verdict
    if outcome != "not applicable":
        n = len(changes)
        assert [comparison.value.layers for comparison in verdict.comparisons] == [(n - 1, n - 1), (n, n)]


LEARNT_CLAIMS = [
    claim.id
    for claim in all_claims()
    if any(run.analysis.startswith("interventions/") for run in claim.all_runs.values())
]


@pytest.mark.parametrize("name", LEARNT_CLAIMS)
def test_no_claim_about_an_intervention_is_judged_if_nothing_was_learnt(name: str) -> None:
    """The judge reads the reference before any number, so that the shape of the result does not matter."""
    numbers = [estimates(value, 0.02) for value in (0.55, 0.55, 0.0)]
    reference = ReferenceScore(
        name="the model", baseline="majority class", score=numbers[0], baseline_score=numbers[1], difference=numbers[2]
    )
    data = similarity(CONSERVATIVE).model_copy(update={"reference": reference})
    verdict = judge(claim(name), dict.fromkeys(claim(name).all_runs, result(data)))
    assert verdict.outcome == "not applicable" and verdict.obstacle.startswith("Nothing learnt that could be lost")
