"""Every kind of test can hold, fail and be inconclusive, on planted results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bertology.claims.answer import write_answer
from bertology.claims.claim import Claim, LayerCount
from bertology.claims.judge import judge
from bertology.claims.result_numbers import count_layers, map_layers
from bertology.claims.verdict import (
    SPECIFIC,
    ControlVerdict,
    FewExamples,
    LearningProbe,
    Specificity,
    Verdict,
    count_verdicts,
)
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.results.measured_shape import ReferenceScore, change_measure, gain_measure
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table


def estimates(values: Any, half: float) -> Estimates:
    array = np.asarray(values, float)
    return Estimates(value=array, low=array - half, high=array + half, n=np.full(array.shape, 90))


def result(data: Any) -> Result:
    return Result(analysis="a/b", version=1, options={}, inputs={}, n=9, data=data, provenance={})


def claim(test: dict[str, Any], **fields: Any) -> Claim:
    defaults: dict[str, Any] = {
        "id": "c",
        "statement": "f",
        "section": "p",
        "published_value": "x",
        "analysis": "a/b",
        "test": test,
    }
    return Claim(**{**defaults, **fields})


def outcome(test: dict[str, Any], data: Any, **fields: Any) -> str:
    return judge(claim(test, **fields), {"": result(data)}).outcome


def curve(values: Any, half: float = 0.01, first: int = 1) -> LayerCurve:
    measured = estimates(values, half)
    return LayerCurve(
        measures={"m": measured}, baselines={"b": {"m": estimates(np.zeros(len(values)), 0)}}, first_layer=first
    )


def grid(values: Any, half: float = 0.01, base: float = 0.0) -> HeadGrid:
    array = np.asarray(values, float)
    return HeadGrid(
        measures={"m": estimates(array, half)}, baselines={"b": {"m": estimates(np.full(array.shape, base), 0)}}
    )


def table(values: dict[str, float], base: dict[str, float], half: float = 0.01) -> Table:
    return Table(
        measures={"m": estimates(list(values.values()), half), "o": estimates(list(values.values()), half)},
        baselines={"b": {"m": estimates([base[name] for name in values], half)}},
        row_names=tuple(values),
    )


RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]


@pytest.mark.parametrize(
    ("half", "early", "late", "expected"),
    [(0.01, [1, 3], [10, 12], "fails"), (0.01, [10, 12], [1, 3], "holds"), (2.0, [10, 12], [1, 3], "inconclusive")],
)
def test_greater_compares_the_mean_over_layers(half: float, early: list[int], late: list[int], expected: str) -> None:
    test = {"kind": "greater", "left": {"measure": "m", "layers": early}, "right": {"measure": "m", "layers": late}}
    assert outcome(test, curve(RISING, half)) == expected


def test_greater_compares_with_a_constant_and_by_a_margin() -> None:
    test: dict[str, Any] = {"kind": "greater", "left": {"measure": "m", "layers": [12, 12]}, "right": 1.0}
    assert outcome(test, curve(RISING)) == "holds"
    assert outcome(test | {"margin": 0.5}, curve(RISING)) == "fails"


@pytest.mark.parametrize("value", [0.995, 1.005])
def test_an_interval_across_the_threshold_is_inconclusive(value: float) -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": 1.0}
    assert outcome(test, curve([value] * 12)) == "inconclusive"


def test_greater_compares_with_a_baseline_of_the_same_layers() -> None:
    baseline = {"measure": "m", "baseline": "b"}
    assert outcome({"kind": "greater", "left": {"measure": "m"}, "right": baseline}, curve(RISING)) == "holds"
    assert outcome({"kind": "greater", "left": baseline, "right": {"measure": "m"}}, curve(RISING)) == "fails"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.4, "holds"), (0.7, "fails"), (0.1, "fails"), (0.5, "inconclusive"), (0.495, "inconclusive")],
)
def test_between_applies_to_a_measure_and_to_a_sum_of_measures(value: float, expected: str) -> None:
    data = table({"all": value}, {"all": 0.0})
    assert (
        outcome({"kind": "between", "value": {"measure": "m", "row": "all"}, "low": 0.3, "high": 0.5}, data) == expected
    )
    summed = {"measure": "m", "added_measures": ["o"], "row": "all"}
    assert outcome({"kind": "between", "value": summed, "low": 0.6, "high": 1.0}, data) == expected


def test_any_head_is_corrected_for_the_number_of_heads() -> None:
    test = {"kind": "any head", "measure": "m", "threshold": 0.5, "baselines": ["b"]}
    planted = np.full((12, 12), 0.2)
    assert outcome(test, grid(planted)) == "fails"
    planted[3, 4] = 0.9
    assert outcome(test, grid(planted)) == "holds"
    assert outcome(test, grid(planted, base=0.95)) == "fails"
    # An interval that reaches 0.5 only after the correction for 144 heads does not decide.
    planted[3, 4] = 0.6
    assert outcome(test, grid(planted, half=0.09)) == "inconclusive"
    assert outcome(test, grid([[0.6]], half=0.09)) == "holds"


def test_noise_rarely_gives_a_head_above_the_threshold() -> None:
    generator = np.random.default_rng(0)
    test = {"kind": "any head", "measure": "m", "threshold": 0.5}
    outcomes = [outcome(test, grid(0.5 + 0.05 * generator.normal(size=(12, 12)), half=0.098)) for _ in range(200)]
    assert outcomes.count("holds") <= 10  # allowed in 2.5 % of samples


def test_values_without_intervals_are_inconclusive() -> None:
    values = np.full((12, 12), 0.2)
    values[3, 4] = 0.4
    without_intervals = grid(values, half=float("nan"))
    for threshold in (0.1, 0.5):
        verdict = judge(
            claim({"kind": "any head", "measure": "m", "threshold": threshold}), {"": result(without_intervals)}
        )
        assert verdict.outcome == "inconclusive" and verdict.comparisons[0].value.head == Head(3, 4)
    # A head without an interval counts even if all others are clearly below the threshold.
    with_intervals = grid(values).measures["m"]
    partly_without = with_intervals.model_copy(update={"high": np.where(values == 0.4, np.nan, with_intervals.high)})
    data = HeadGrid(measures={"m": partly_without}, baselines={"b": {"m": with_intervals}})
    assert outcome({"kind": "any head", "measure": "m", "threshold": 0.5}, data) == "inconclusive"


def test_missing_rows_do_not_count() -> None:
    test: dict[str, Any] = {
        "kind": "any row",
        "measure": "m",
        "baseline": "b",
        "rows": ["det", "obj", "aux"],
        "min_rows": 2,
    }
    better = table({"det": 0.9, "obj": 0.9, "aux": 0.1}, {"det": 0.5, "obj": 0.5, "aux": 0.5})
    assert outcome(test, better) == "holds"
    assert outcome(test | {"min_rows": 3}, better) == "fails"
    assert outcome(test, table({"det": 0.9}, {"det": 0.5})) == "not applicable"
    assert outcome(test, table({"det": 0.9, "obj": 0.5}, {"det": 0.5, "obj": 0.5})) == "inconclusive"


@pytest.mark.parametrize(
    ("difference", "half", "margin", "expected"),
    [
        (0.05, 0.02, 0.0, "holds"),
        (0.05, 0.06, 0.0, "inconclusive"),
        (-0.05, 0.02, 0.0, "fails"),
        (0.05, 0.02, 0.1, "fails"),
        (0.15, 0.02, 0.1, "holds"),
        (0.0, 0.0, 0.0, "inconclusive"),
    ],
)
def test_a_row_is_compared_by_its_paired_difference_if_there_is_one(
    difference: float, half: float, margin: float, expected: str
) -> None:
    """The separate intervals overlap; they are reported but do not decide."""
    measures = {"m": estimates([0.8], 0.2), "d": estimates([difference], half)}
    data = Table(measures=measures, baselines={"b": {"m": estimates([0.75], 0.2)}}, row_names=("det",))
    test: dict[str, Any] = {"kind": "any row", "measure": "m", "baseline": "b", "rows": ["det"], "margin": margin}
    assert outcome(test | {"margin": 0.0}, data) == "inconclusive"
    verdict = judge(claim(test | {"difference": "d"}), {"": result(data)})
    assert verdict.outcome == expected
    (comparison,) = verdict.comparisons
    assert comparison.margin == margin and comparison.difference == data.measures["d"][0]
    said = "; the finding says more than 0.1." if margin else "."
    assert f"The difference is {difference:.2f}" in answer(test | {"difference": "d"}, data)
    assert said in answer(test | {"difference": "d"}, data)
    assert outcome(test | {"difference": "absent"}, data) == "not applicable"


def test_peak_layer_in_the_middle() -> None:
    hill = [0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1]
    test = {"kind": "peak layer", "measure": "m", "layers": [5, 8]}
    assert outcome(test, curve(hill)) == "holds"
    assert outcome(test, curve(RISING)) == "fails"
    assert outcome(test, curve(hill, half=0.5)) == "inconclusive"
    assert outcome(test | {"lowest": True}, curve([-v for v in hill])) == "holds"
    assert outcome(test, grid(np.repeat(np.array(hill)[:, None], 4, axis=1))) == "holds"


def test_the_highest_of_many_similar_layers_is_no_peak() -> None:
    """Intervals that overlap only after the correction for twelve layers decide nothing."""
    test = {"kind": "peak layer", "measure": "m", "layers": [5, 8]}
    barely = [0.49] * 5 + [0.515] + [0.49] * 6
    assert outcome(test, curve(barely)) == "inconclusive"
    assert outcome(test, curve([2 * value for value in barely])) == "holds"


def test_increasing_numbers() -> None:
    test = {"kind": "increasing", "values": [{"measure": "m", "row": row} for row in "abc"]}
    zero = dict.fromkeys("abc", 0.0)
    assert outcome(test, table({"a": 0.1, "b": 0.2, "c": 0.3}, zero)) == "holds"
    assert outcome(test, table({"a": 0.1, "b": 0.3, "c": 0.2}, zero)) == "fails"
    assert outcome(test, table({"a": 0.1, "b": 0.2, "c": 0.205}, zero)) == "inconclusive"


def test_peaks_in_order_compares_several_runs() -> None:
    runs = {name: {"analysis": "a/b", "options": {"label": name}} for name in ("surface", "meaning")}
    test = {"kind": "peaks in order", "curves": [{"measure": "m", "run": name} for name in runs]}
    ordered = claim(test, analysis=None, runs=runs)
    early, late = (result(curve([float(layer == peak) for layer in range(12)])) for peak in (1, 9))
    assert judge(ordered, {"surface": early, "meaning": late}).outcome == "holds"
    assert judge(ordered, {"surface": late, "meaning": early}).outcome == "fails"
    unsure = result(curve([0.5] * 12, half=0.3))
    assert judge(ordered, {"surface": unsure, "meaning": late}).outcome == "inconclusive"
    without_intervals = result(curve([0.5, *[0.1] * 11], half=float("nan")))
    assert judge(ordered, {"surface": without_intervals, "meaning": late}).outcome == "inconclusive"
    undefined = judge(ordered, {"surface": result(curve([float("nan")] * 12)), "meaning": late})
    assert undefined.outcome == "not applicable" and "in any layer" in undefined.obstacle


def test_a_cell_of_a_matrix_is_selected_by_row_and_column() -> None:
    measures = {"m": estimates([[0.1, 0.9], [0.2, 0.3]], 0.01)}
    data = Matrix(measures=measures, baselines={"b": measures}, row_names=("a", "b"), column_names=("c", "d"))
    test = {"kind": "greater", "left": {"measure": "m", "row": "a", "column": "d"}, "right": 0.5}
    assert outcome(test, data) == "holds"
    for cell in ({"row": "x", "column": "d"}, {"row": "a", "column": "x"}, {"row": "a"}):
        verdict = judge(claim(test | {"left": {"measure": "m", **cell}}), {"": result(data)})
        assert verdict.outcome == "not applicable" and "the result has no" in verdict.obstacle


def test_refused_and_missing_results_are_not_applicable_with_the_reason() -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": 0.0}
    refusal = Refusal("No trees", "a treebank", "Give one")
    refused = judge(claim(test, requirements=("dependency trees",)), {"": refusal})
    assert refused.obstacle == str(refusal) and refused.lacking == "a treebank"  # what is refused, not what is needed
    absent = judge(claim({"kind": "greater", "left": {"measure": "x"}, "right": 0.0}), {"": result(curve(RISING))})
    assert absent.outcome == "not applicable" and "the result has no x" in absent.obstacle and absent.lacking == ""
    undefined = curve([float("nan")] * 12)
    assert outcome(test, undefined) == "not applicable"


def test_layers_are_mapped_by_relative_depth() -> None:
    assert list(map_layers((5, 10), 12, 12)) == [5, 6, 7, 8, 9, 10]
    assert list(map_layers((5, 10), 12, 8)) == [4, 5, 6, 7]
    assert list(map_layers((1, 4), 12, 24)) == list(range(1, 9))
    assert list(map_layers((12, 12), 12, 6)) == [6]
    assert list(map_layers((1, 1), 12, 2)) == [1]
    with_embeddings = curve([5.0] + [1.0] * 12, first=0)
    test = {"kind": "greater", "left": {"measure": "m", "layers": [0, 0]}, "right": {"measure": "m", "layers": [1, 12]}}
    assert outcome(test, with_embeddings) == "holds"


def test_a_claim_without_runs_or_with_unknown_runs_is_invalid() -> None:
    with pytest.raises(ValueError, match="either `analysis` or `runs`"):
        claim({"kind": "greater", "left": {"measure": "m"}, "right": 0.0}, analysis=None)
    with pytest.raises(ValueError, match="unknown runs"):
        claim({"kind": "greater", "left": {"measure": "m", "run": "other"}, "right": 0.0})


@pytest.mark.parametrize(
    ("position", "nearest", "expected"),
    [
        ({"x": 64}, "at 64 rank", "holds"),
        ({"x_fraction": 1.0}, "at 64 rank", "holds"),
        ({"x": 2}, "at 1 rank", "fails"),
        ({"x_fraction": 0.25}, "at 8 rank", "holds"),
    ],
)
def test_a_number_along_a_curve_is_that_of_the_nearest_point(
    position: dict[str, float], nearest: str, expected: str
) -> None:
    data = Curve(
        x_name="rank",
        x=np.array([1.0, 8.0, 64.0]),
        measures={"m": estimates([0.1, 0.6, 0.8], 0.01)},
        baselines={"b": {"m": estimates([0.0] * 3, 0)}},
    )
    test = {"kind": "greater", "left": {"measure": "m", **position}, "right": 0.5}
    verdict = judge(claim(test), {"": result(data)})
    assert verdict.outcome == expected and nearest in answer(test, data)


@pytest.mark.parametrize(("fraction", "expected"), [(1.0, "at 64 heads left is 0.8"), (0.5, "at 32 heads left is 0.6")])
def test_a_fraction_is_relative_to_the_largest_x_even_if_x_decreases(fraction: float, expected: str) -> None:
    data = Curve(
        x_name="heads left",
        x=np.array([64.0, 32.0, 0.0]),
        measures={"m": estimates([0.8, 0.6, 0.1], 0.01)},
        baselines={"b": {"m": estimates([0.0] * 3, 0)}},
    )
    test = {"kind": "greater", "left": {"measure": "m", "x_fraction": fraction}, "right": 0.5}
    assert expected in answer(test, data)


def test_a_missing_number_is_reported_with_the_requirements() -> None:
    test = {"kind": "greater", "left": {"measure": "gone"}, "right": 0.5}
    verdict = judge(claim(test, requirements=("a masked language model",)), {"": result(curve(RISING))})
    assert verdict.outcome == "not applicable"
    assert "the result has no gone" in verdict.obstacle and "It needs a masked language model." in verdict.obstacle


def test_verdicts_are_counted_and_specific_ones_first() -> None:
    def holding(specificity: Specificity) -> Verdict:
        return Verdict("holds", controls=(ControlVerdict("untrained model", specificity),))

    verdicts = [holding("specific"), holding("stronger"), holding("earned too"), Verdict("holds")]
    verdicts += [Verdict("fails"), Verdict("inconclusive"), Verdict("inconclusive")]
    assert count_verdicts(verdicts) == (
        "2 hold and are specific to the model, 1 holds also without training or with a simpler baseline, "
        "1 holds without a control, 1 fails, 2 inconclusive"
    )
    assert count_verdicts([Verdict("not applicable")]) == "1 not applicable"


def layers_greater(left: list[int], right: list[int]) -> dict[str, Any]:
    return {"kind": "greater", "left": {"measure": "m", "layers": left}, "right": {"measure": "m", "layers": right}}


def with_untrained(values: Any, untrained: Any, half: float = 0.01) -> LayerCurve:
    measures = {"m": estimates(values, half)}
    baselines = {"untrained model": {"m": estimates(untrained, half)}}
    return LayerCurve(measures=measures, baselines=baselines, first_layer=1)


@pytest.mark.parametrize(
    ("untrained", "half", "specificity", "label"),
    [
        ([0.1] * 12, 0.01, "specific", "holds, specific"),
        ([value / 4 for value in RISING], 0.01, "stronger", "holds, more than without training"),
        (RISING, 0.01, "earned too", "holds, also without training"),
        ([2 * value for value in RISING], 0.01, "earned too", "holds, also without training"),
        ([value / 4 for value in RISING], 0.4, "undecided", "holds, not distinguishable from untrained model"),
    ],
)
def test_a_finding_is_compared_with_the_untrained_model(
    untrained: list[float], half: float, specificity: str, label: str
) -> None:
    rises = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [10, 12]},
        "right": {"measure": "m", "layers": [1, 3]},
    }
    verdict = judge(claim(rises), {"": result(with_untrained(RISING, untrained, half))})
    assert (verdict.specificity, verdict.label) == (specificity, label)
    assert verdict.as_record()["controls"][0]["name"] == "untrained model"


def test_specificity_is_only_asked_of_what_holds() -> None:
    falls = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [1, 3]},
        "right": {"measure": "m", "layers": [10, 12]},
    }
    verdict = judge(claim(falls), {"": result(with_untrained(RISING, RISING))})
    assert (verdict.outcome, verdict.specificity, verdict.label) == ("fails", None, "fails")


def test_the_best_head_is_compared_with_the_best_head_of_the_control() -> None:
    """An untrained model with one head as good as the model's best makes the finding unspecific."""
    test = {"kind": "any head", "measure": "m", "threshold": 0.5, "baselines": ["untrained model"]}

    def specificity(untrained: list[list[float]]) -> str | None:
        data = HeadGrid(
            measures={"m": estimates([[0.1, 0.9]], 0.01)},
            baselines={"untrained model": {"m": estimates(untrained, 0.01)}},
        )
        return judge(claim(test), {"": result(data)}).specificity

    assert specificity([[0.1, 0.1]]) == "specific"
    assert specificity([[0.9, 0.1]]) == "earned too"
    assert specificity([[0.6, 0.1]]) == "stronger"


def test_the_paired_difference_of_the_best_heads_is_corrected_for_their_number() -> None:
    """It is the largest of six, and holds for all six at once."""
    rng = np.random.default_rng(0)
    sentences = rng.normal(scale=0.05, size=(60, 1, 1))
    noise = 0.02 * rng.normal(size=(2, 60, 2, 3))
    means = np.full((2, 3), 0.3)
    means[1, 2] = 0.9
    model, control = (bootstrap_mean(values + sentences, seed=0) for values in (means + noise[0], means / 2 + noise[1]))
    data = HeadGrid(measures={"m": model}, baselines={"untrained model": {"m": control}}).with_paired_differences()
    test = {"kind": "any head", "measure": "m", "threshold": 0.2}
    difference = judge(claim(test), {"": result(data)}).controls[0].difference
    alone = data.paired_differences["untrained model"]["m"][1, 2]
    factor = norm.isf(0.025 / 6) / norm.isf(0.025)
    assert difference is not None and difference.value == alone.value and difference.interval == "simultaneous"
    assert difference.value - difference.low == pytest.approx(factor * (alone.value - alone.low))
    assert difference.high - difference.value == pytest.approx(factor * (alone.high - alone.value))


def test_a_range_that_the_control_reaches_too_is_not_specific() -> None:
    test = {"kind": "between", "value": {"measure": "m", "layers": [1, 12]}, "low": 0.0, "high": 1.0}
    for untrained, specificity in ((0.5, "earned too"), (2.0, "specific"), (1.0, "undecided")):
        verdict = judge(claim(test), {"": result(with_untrained([0.5] * 12, [untrained] * 12))})
        assert verdict.specificity == specificity


def test_a_control_may_be_a_simpler_baseline_or_a_test() -> None:
    greater = {"kind": "greater", "left": {"measure": "m", "row": "a"}, "right": 0.1}
    data = table({"a": 0.5, "b": 0.5}, {"a": 0.51, "b": 0.0})
    verdict = judge(claim(greater, controls=["b"]), {"": result(data)})
    assert verdict.label == "holds, no better than b"
    beyond = {"kind": "greater", "left": {"measure": "o", "row": "b"}, "right": 0.2}
    verdict = judge(claim(greater, controls=[{"name": "simple rule", "test": beyond}]), {"": result(data)})
    assert verdict.label == "holds, specific"
    beyond |= {"right": 0.8}
    verdict = judge(claim(greater, controls=[{"name": "simple rule", "test": beyond}]), {"": result(data)})
    assert verdict.label == "holds, no better than simple rule"
    verdict = judge(claim(greater, controls=["absent"]), {"": result(data)})
    assert verdict.label == "holds, absent not measured"


def test_the_answer_has_the_numbers_of_a_control_with_a_test_of_its_own() -> None:
    greater = {"kind": "greater", "left": {"measure": "m", "row": "a"}, "right": 0.1}
    beyond = {"kind": "greater", "left": {"measure": "o", "row": "b"}, "right": 0.2}
    data = table({"a": 0.5, "b": 0.4}, {"a": 0.0, "b": 0.0})
    control = {"name": "simple rule", "test": beyond}
    own_words = control | {"answer": "The rule reaches {value} {interval}."}
    assert answer(greater, data, controls=[own_words]).endswith("The rule reaches 0.40 [0.39, 0.41].")
    assert "Beside the control simple rule: O of b is 0.40" in answer(greater, data, controls=[control])


def test_a_claim_names_its_controls_or_says_why_there_are_none() -> None:
    greater = {"kind": "greater", "left": {"measure": "m"}, "right": 0.0}
    with pytest.raises(ValueError, match="either `controls` or `no_control`"):
        claim(greater, controls=[])
    without = claim(greater, controls=[], no_control="the test itself compares with random heads")
    assert judge(without, {"": result(curve(RISING))}).label == "holds"


def test_noise_is_rarely_called_specific() -> None:
    """Two models with the same curve differ beyond the interval in at most 5 % of samples."""
    generator = np.random.default_rng(0)
    rises = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [12, 12]},
        "right": {"measure": "m", "layers": [1, 1]},
    }
    specific = 0
    for _ in range(400):
        model, untrained = (np.array(RISING) + 0.05 * generator.normal(size=12) for _ in range(2))
        verdict = judge(claim(rises), {"": result(with_untrained(model, untrained, half=0.098))})
        specific += verdict.specificity in SPECIFIC
    assert specific <= 20


def paired_curve(model: Any, untrained: Any) -> LayerCurve:
    """A curve by bootstrap from (sentence, layer) values of the model and of the untrained model."""
    measured, control = (bootstrap_mean(np.asarray(values), seed=0) for values in (model, untrained))
    data = LayerCurve(measures={"m": measured}, baselines={"untrained model": {"m": control}}, first_layer=1)
    return data.with_paired_differences()


@pytest.mark.parametrize("test", [layers_greater([12, 12], [1, 1]), {**layers_greater([9, 12], [1, 1]), "right": 0.1}])
def test_the_control_is_compared_on_the_same_examples(test: dict[str, Any]) -> None:
    """Sentences differ more than model and control do on each of them: their intervals overlap."""
    generator = np.random.default_rng(0)
    sentences = generator.normal(scale=0.3, size=(60, 1)) * np.arange(12) / 11
    noise = 0.02 * generator.normal(size=(2, 60, 12))
    rising = np.arange(12) / 11
    data = paired_curve(0.6 * rising + sentences + noise[0], 0.5 * rising + sentences + noise[1])
    verdict = judge(claim(test), {"": result(data)})
    assert verdict.label == "holds, more than without training"
    difference = verdict.controls[0].difference
    assert difference is not None and 0 < difference.low < difference.value < difference.high < 0.15
    unpaired = data.model_copy(update={"paired_differences": {}})
    assert judge(claim(test), {"": result(unpaired)}).label == "holds, also without training"
    falls = {"kind": "each layer", "measure": "m", "layers": [1, 1], "others": [12, 12], "lowest": True}
    verdict = judge(claim(falls), {"": result(data)})
    assert verdict.label == "holds, more than without training"
    assert judge(claim(falls), {"": result(unpaired)}).label == "holds, also without training"


def test_paired_noise_is_rarely_called_specific() -> None:
    """Two models with the same curve differ beyond the paired interval in at most 5 % of samples."""
    generator = np.random.default_rng(1)
    specific = 0
    for _ in range(200):
        sentences = np.arange(12) / 11 + generator.normal(scale=0.3, size=(40, 1))
        model, untrained = (sentences + 0.1 * generator.normal(size=(40, 12)) for _ in range(2))
        verdict = judge(claim(layers_greater([12, 12], [1, 1])), {"": result(paired_curve(model, untrained))})
        specific += verdict.specificity in SPECIFIC
    assert specific <= 10


def test_nothing_is_decided_on_a_handful_of_examples() -> None:
    few = Estimates(value=np.ones(12), low=np.ones(12), high=np.ones(12), n=np.full(12, 7))
    data = LayerCurve(measures={"m": few}, baselines={"b": {"m": few}})
    verdict = judge(claim({"kind": "greater", "left": {"measure": "m"}, "right": 0.5}), {"": result(data)})
    assert verdict.outcome == "inconclusive" and verdict.caveats == (FewExamples(7, 10),)


def learning(gain: float, size: int, value: float = 0.6, chain: float = 0.4) -> LayerCurve:
    names = {"m": [value] * 12, gain_measure("m"): [gain] * 12}
    return LayerCurve(
        measures={name: estimates(values, 0.001) for name, values in names.items()},
        baselines={"chain": {"m": estimates([chain] * 12, 0.001)}},
        sample={"training sentences": size},
        first_layer=1,
    )


def test_a_probe_that_still_learns_cannot_fail_a_claim() -> None:
    above = {"kind": "greater", "left": {"measure": "m"}, "right": {"measure": "m", "baseline": "chain"}}
    assert outcome(above, learning(0.1, 500, value=0.3)) == "inconclusive"
    assert outcome(above, learning(0.01, 42, value=0.3)) == "inconclusive"
    assert outcome(above, learning(0.01, 500, value=0.3)) == "fails"
    # Five more doublings would not lead it to the chain: noise fails.
    assert outcome(above, learning(0.03, 500, value=0.1)) == "fails"
    assert outcome(above, learning(0.03, 42, value=0.1)) == "inconclusive"
    # A score that falls with more data, as selectivity does, must stay above after five doublings.
    assert outcome(above, learning(-0.03, 500)) == "holds"
    assert outcome(above, learning(-0.05, 500)) == "inconclusive"
    # It is above the chain already; more training data only raises it.
    assert outcome(above, learning(0.1, 42)) == "holds"
    verdict = judge(claim(above), {"": result(learning(0.1, 42))})
    assert verdict.n_training == 42 and not verdict.caveats
    verdict = judge(claim(above), {"": result(learning(0.1, 500, value=0.3))})
    (caveat,) = verdict.caveats
    assert isinstance(caveat, LearningProbe) and caveat.n_training == 500 and caveat.gain.value == pytest.approx(0.1)


def test_layers_of_a_probe_that_still_learns_are_not_compared() -> None:
    values = {"m": RISING, gain_measure("m"): [0.1] * 12}
    data = learning(0.1, 500).model_copy(
        update={"measures": {name: estimates(numbers, 0.001) for name, numbers in values.items()}}
    )
    peak = {"kind": "peak layer", "measure": "m", "layers": [10, 12]}
    assert outcome(peak, data) == "inconclusive"
    flat = {"m": RISING, gain_measure("m"): [0.001] * 12}
    data = data.model_copy(update={"measures": {name: estimates(numbers, 0.001) for name, numbers in flat.items()}})
    assert outcome(peak, data) == "holds"


def test_all_of_several_comparisons_must_hold() -> None:
    late = {"left": {"measure": "m", "layers": [12, 12]}}
    test = {"kind": "all of", "tests": [late | {"right": 1.0}, late | {"right": {"measure": "m", "layers": [1, 3]}}]}
    assert outcome(test, curve(RISING)) == "holds"
    test["tests"] = [late | {"right": 1.0}, late | {"right": 1.5}]
    assert outcome(test, curve(RISING)) == "fails"


def test_foreign_attention_is_compared_with_the_baselines_it_has() -> None:
    """It comes without an untrained model; uniform attention remains."""
    test = {"kind": "any head", "measure": "m", "threshold": 0.5, "baselines": ["b", "untrained model"]}
    verdict = judge(claim(test), {"": result(grid([[0.92]]))})
    assert verdict.label == "holds, untrained model not measured"
    assert outcome(test | {"baselines": ["untrained model"]}, grid([[0.92]])) == "not applicable"


def answer(test: dict[str, Any], data: Any, **fields: Any) -> str:
    """The answer without the published value, which is the last sentence."""
    tested = claim(test, **fields)
    return write_answer(tested, judge(tested, {"": result(data)})).rpartition(" Published")[0]


def test_an_answer_names_layers_condition_and_sample_size() -> None:
    greater = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [10, 12]},
        "right": {"measure": "m", "layers": [1, 3]},
    }
    assert answer(greater, curve(RISING)) == (
        "Yes. M in layers 10 to 12 of 12 is 1.10 [1.09, 1.11] (n = 90), beside 0.20 [0.19, 0.21] for m in layers 1 to "
        "3 of 12. An untrained model was not measured."
    )
    assert answer(greater, curve(RISING[:8])).startswith("Yes. M in layers 7 and 8 of 8 is 0.75")
    embeddings = {"kind": "greater", "left": {"measure": "m", "layers": [0, 0]}, "right": 0.5}
    assert answer(embeddings, curve([0.3, *RISING], first=0)) == (
        "No. M in the embeddings is 0.30 [0.29, 0.31] (n = 90). The finding says more than 0.5."
    )
    summed = {
        "kind": "between",
        "value": {"measure": "m", "added_measures": ["o"], "row": "a"},
        "low": 0.0,
        "high": 1.0,
    }
    assert answer(summed, table({"a": 0.3}, {"a": 0.0})) == (
        "Yes. M + o of a is 0.60 [0.58, 0.62] (n = 90). The finding says between 0 and 1. An untrained model was not "
        "measured."
    )


def test_an_answer_reports_corrected_intervals() -> None:
    """The interval of the best of many holds for all of them at once, and is wider than that of one alone."""
    any_head = {"kind": "any head", "measure": "m", "threshold": 0.5}
    assert answer(any_head, grid(np.full((12, 12), 0.6), half=0.09)) == (
        "Undecided, because no head is clearly above what the finding says, and not every head is clearly below it. "
        "M of head 1-1 is 0.60 [0.44, 0.76] (n = 90). The finding says more than 0.5."
    )
    hill = [0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1]
    peak = {"kind": "peak layer", "measure": "m", "layers": [5, 8]}
    assert answer(peak, curve(hill, half=0.1)).startswith(
        "Yes. M in layer 6 of 12 is 0.9 [0.8, 1.0] (n = 90), beside 0.50 [0.35, 0.65] for m in layer 4 of 12."
    )
    lowest = answer({"kind": "peak layer", "measure": "m", "layers": [1, 3], "lowest": True}, curve(RISING))
    assert lowest.startswith("Yes. M in layer 1 of 12 is 0.10") and "for m in layer 4 of 12" in lowest


def test_a_verdict_is_a_record_of_numbers() -> None:
    """Whoever reads the JSON needs no text: value, interval, n, head, layers and what is required are fields."""
    greater = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [10, 12]},
        "right": {"measure": "m", "layers": [1, 3]},
        "margin": 0.1,
    }
    record = judge(claim(greater), {"": result(curve(RISING[:8]))}).as_record()
    assert record["verdict"] == "holds"
    assert (record["value"], record["low"], record["high"]) == pytest.approx((0.75, 0.74, 0.76))
    assert (record["n"], record["interval"], record["layers"]) == (90, "bootstrap", [7, 8])
    required = record["required"]
    assert required["margin"] == 0.1 and required["above"]["layers"] == [1, 2]
    assert "n_candidates" not in record["comparisons"][0], "one number was compared, and not the best of several"
    assert required["above"]["value"] == pytest.approx(0.15)
    best_head = {"kind": "any head", "measure": "m", "threshold": 0.5, "baselines": ["b"]}
    record = judge(claim(best_head), {"": result(grid([[0.2, 0.6]]))}).as_record()
    assert record["head"] == "1-2" and len(record["comparisons"]) == 2
    assert record["comparisons"][0]["n_candidates"] == 2
    assert record["comparisons"][0]["required"] == {"above": 0.5, "margin": 0.0}
    assert record["comparisons"][1]["required"]["above"]["baseline"] == "b"
    between = {"kind": "between", "value": {"measure": "m", "row": "a"}, "low": 0.0, "high": 1.0}
    record = judge(claim(between), {"": result(table({"a": 0.3}, {"a": 0.0}))}).as_record()
    assert record["required"] == {"above": 0.0, "below": 1.0} and record["row"] == "a"
    refused = judge(claim(between), {"": Refusal("No trees", "a treebank", "Give one")}).as_record()
    assert refused["verdict"] == "not applicable" and refused["comparisons"] == [] and "value" not in refused


def test_a_model_without_layers_is_not_applicable() -> None:
    """Static vectors are embeddings alone."""
    test = {"kind": "greater", "left": {"measure": "m", "layers": [1, 12]}, "right": 0.5}
    verdict = judge(claim(test), {"": result(curve([0.7], first=0))})
    assert verdict.outcome == "not applicable" and "no layers above its embeddings" in verdict.obstacle
    assert outcome(test | {"left": {"measure": "m", "layers": [0, 0]}}, curve([0.7], first=0)) == "holds"


def test_a_shared_baseline_cancels_out_of_the_comparison_with_a_control() -> None:
    """Model and control lie .2 apart; that the baseline of both is uncertain does not matter."""
    data = Table(
        measures={"m": estimates([0.8], 0.01)},
        baselines={"b": {"m": estimates([0.3], 0.2)}, "untrained model": {"m": estimates([0.6], 0.01)}},
        row_names=("a",),
    )
    number = {"measure": "m", "row": "a"}
    above = {"kind": "greater", "left": number, "right": number | {"baseline": "b"}}
    verdict = judge(claim(above), {"": result(data)})
    assert verdict.specificity == "stronger"
    difference = verdict.controls[0].difference
    assert difference is not None
    assert (difference.low, difference.high) == pytest.approx((0.2 - 0.01 * np.sqrt(2), 0.2 + 0.01 * np.sqrt(2)))


def test_a_row_with_a_paired_difference_is_compared_with_a_control_that_has_none() -> None:
    data = Table(
        measures={"m": estimates([0.8], 0.01), "d": estimates([0.5], 0.01)},
        baselines={"b": {"m": estimates([0.3], 0.01)}, "untrained model": {"m": estimates([0.2], 0.01)}},
        row_names=("det",),
    )
    test = {"kind": "any row", "measure": "m", "baseline": "b", "difference": "d", "rows": ["det"]}
    assert judge(claim(test), {"": result(data)}).specificity == "specific"


def test_the_least_favourable_control_decides() -> None:
    data = table({"a": 0.5}, {"a": 0.51})
    data = data.model_copy(update={"baselines": {**data.baselines, "zero": {"m": estimates([0.0], 0.01)}}})
    greater = {"kind": "greater", "left": {"measure": "m", "row": "a"}, "right": 0.1}
    for controls in (["zero", "b"], ["b", "zero"]):
        assert judge(claim(greater, controls=controls), {"": result(data)}).label == "holds, no better than b"


def test_an_expected_layer_may_still_move_with_more_training_data() -> None:
    def verdict(shift: float) -> str:
        measures = {"expected layer": [3.0, 5.0], gain_measure("expected layer"): [0.0, -shift]}
        data = Table(
            measures={name: estimates(values, 0.1) for name, values in measures.items()},
            baselines={"b": {"expected layer": estimates([4.0, 4.0], 0.1)}},
            row_names=("upos", "relation"),
        )
        order = {"kind": "increasing", "values": [{"measure": "expected layer", "row": row} for row in data.row_names]}
        return outcome(order, data)

    assert (verdict(0.1), verdict(2.5)) == ("holds", "inconclusive")


EIGHT = [0.1, 0.2, 0.3, 0.3, 0.4, 0.4, 0.7, 0.9]
LAST_TWO: dict[str, Any] = {"kind": "each layer", "measure": "m", "layers": {"last": 2}}


@pytest.mark.parametrize(
    ("values", "half", "expected"),
    [
        (EIGHT, 0.01, "holds"),
        ([*EIGHT[:6], 0.35, 0.9], 0.01, "fails"),  # the mean of the last two is still the highest
        ([*EIGHT[:6], 0.41, 0.9], 0.01, "inconclusive"),
        (EIGHT, 0.2, "inconclusive"),
    ],
    ids=["each is higher", "one lies behind another layer", "one overlaps", "wide intervals"],
)
def test_each_of_the_last_layers_is_compared_with_each_other_layer(
    values: list[float], half: float, expected: str
) -> None:
    verdict = judge(claim(LAST_TWO), {"": result(curve(values, half))})
    assert verdict.outcome == expected
    assert [comparison.value.layers for comparison in verdict.comparisons] == [(7, 7), (8, 8)]
    flipped = [-value for value in values]
    assert outcome(LAST_TWO | {"lowest": True}, curve(flipped, half)) == expected


def test_a_wide_interval_of_one_other_layer_is_enough_to_leave_it_open() -> None:
    """The highest other layer is clearly lower; another one has a lower value and a wide interval."""
    data = curve(EIGHT)
    wide = data.measures["m"].model_copy(update={"high": np.array([2.0, *data.measures["m"].high[1:]])})
    verdict = judge(claim(LAST_TWO), {"": result(data.model_copy(update={"measures": {"m": wide}}))})
    assert verdict.outcome == "inconclusive"
    assert all(comparison.lower.layers == (1, 1) for comparison in verdict.comparisons)  # type: ignore[union-attr]


def test_noise_rarely_has_two_highest_last_layers() -> None:
    generator = np.random.default_rng(0)
    outcomes = [outcome(LAST_TWO, curve(0.05 * generator.normal(size=8), half=0.098)) for _ in range(200)]
    assert outcomes.count("holds") == 0 and outcomes.count("fails") <= 10


@pytest.mark.parametrize(("last", "expected"), [(0.5, "holds"), (0.25, "fails"), (0.305, "inconclusive")])
def test_each_layer_must_exceed_its_baseline_by_the_margin(last: float, expected: str) -> None:
    test = LAST_TWO | {"baseline": "b", "margin": 0.3}
    assert outcome(test, curve([0.0] * 6 + [0.9, last])) == expected


def test_the_embeddings_are_compared_with_every_layer() -> None:
    test = {"kind": "each layer", "measure": "m", "layers": [0, 0], "lowest": True}
    assert outcome(test, curve([0.0, *EIGHT], first=0)) == "holds"
    assert outcome(test, curve([0.15, *EIGHT], first=0)) == "fails"


@pytest.mark.parametrize("n_layers", [3, 8, 12, 24])
def test_a_number_of_layers_is_the_same_in_every_model(n_layers: int) -> None:
    assert list(count_layers(LayerCount(last=2), n_layers)) == [n_layers - 1, n_layers]
    assert list(count_layers(LayerCount(first=1), n_layers)) == [1]
    assert list(count_layers(LayerCount(all_but_last=2), n_layers)) == list(range(1, n_layers - 1))


def test_a_model_with_too_few_layers_is_named() -> None:
    verdict = judge(claim(LAST_TWO), {"": result(curve([0.1, 0.2]))})
    assert verdict.outcome == "not applicable" and "too few layers" in verdict.obstacle
    below = {"kind": "greater", "left": {"measure": "m", "layers": {"all_but_last": 2}}, "right": 0.0}
    assert outcome(below, curve([0.1, 0.2])) == "not applicable"
    with pytest.raises(ValueError, match="one of first, last"):
        LayerCount(first=1, last=1)


def test_embeddings_belong_to_the_first_layers_if_named() -> None:
    test = {"kind": "greater", "left": {"measure": "m", "layers": {"first": 1, "embeddings": True}}, "right": 0.4}
    assert outcome(test, curve([1.0, 0.0, 0.0, 0.0], first=0)) == "holds"
    assert outcome(test, curve([0.0, 0.0, 1.0, 1.0], first=0)) == "fails"


def reference(difference: float, half: float = 0.05) -> ReferenceScore:
    """A score beside a majority class of 0.55."""
    numbers = [estimates(value, half) for value in (0.55 + difference, 0.55, difference)]
    return ReferenceScore(
        name="the trained model",
        baseline="majority class",
        score=numbers[0],
        baseline_score=numbers[1],
        difference=numbers[2],
    )


@pytest.mark.parametrize(("difference", "is_judged"), [(0.3, True), (0.0, False), (-0.3, False), (0.04, False)])
def test_no_claim_is_judged_if_nothing_was_learnt(difference: float, is_judged: bool) -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": -0.05}
    data = curve([0.0] * 12).model_copy(update={"reference": reference(difference)})
    verdict = judge(claim(test, requirements=("a fine-tuned model",)), {"": result(data)})
    assert verdict.outcome == ("holds" if is_judged else "not applicable")
    if not is_judged:
        relation = "not distinguishable from" if difference > 0 else "no better than"
        start = "Nothing learnt for certain" if difference > 0 else "Nothing learnt that could be lost"
        assert verdict.obstacle.startswith(f"{start}: the trained model scores 0.")
        assert f"{relation} majority class, 0.55" in verdict.obstacle and "a fine-tuned model" in verdict.obstacle


def test_a_reference_is_kept_in_json_and_left_out_where_there_is_none() -> None:
    data = curve([0.0] * 12).model_copy(update={"reference": reference(0.0)})
    stored = Result.from_json(result(data).to_json())
    assert isinstance(stored.data, LayerCurve) and stored.data.describe_reference() == data.describe_reference() != ""
    assert "reference" not in result(curve([0.0])).to_json()["data"]


def test_rounding_noise_is_no_difference() -> None:
    noise = 5.55e-17
    above = {"kind": "any head", "measure": "m", "threshold": 0.0}
    assert outcome(above, grid([[noise]], half=0.0)) == "inconclusive"
    assert outcome(above, grid([[-noise]], half=0.0)) == "inconclusive"
    greater = {"kind": "greater", "left": {"measure": "m"}, "right": 0.0}
    assert outcome(greater, curve([noise], half=0.0)) == outcome(greater, curve([-noise], half=0.0)) == "inconclusive"
    layers = {"left": {"measure": "m", "layers": {"last": 1}}, "right": {"measure": "m", "layers": {"first": 1}}}
    assert outcome({"kind": "greater", **layers}, curve([0.3, 0.1 + 0.2], half=0.0)) == "inconclusive"


def two_probes(values: tuple[float, float], gains: tuple[float, float], n_training: int = 500) -> Table:
    """Scores of two probes and what the second half of their training data added."""
    measures = {"m": estimates(values, 0.01), gain_measure("m"): estimates(gains, 0.005)}
    return Table(
        row_names=("a", "b"), measures=measures, baselines={"zero": measures}, sample={"training sentences": n_training}
    )


@pytest.mark.parametrize(
    ("values", "gains", "n_training", "expected"),
    [
        ((0.3, 0.8), (0.05, 0.05), 500, "holds"),  # five doublings of the lower probe do not reach the higher one
        ((0.3, 0.4), (0.05, 0.05), 500, "inconclusive"),
        ((0.8, 0.3), (0.05, 0.05), 500, "fails"),
        ((0.4, 0.3), (0.05, 0.05), 500, "inconclusive"),
        ((0.8, 0.3), (0.05, 0.05), 50, "inconclusive"),
        ((0.4, 0.3), (0.001, 0.001), 500, "fails"),
    ],
)
def test_two_probes_that_still_learn_decide_only_if_learning_cannot_change_their_order(
    values: tuple[float, float], gains: tuple[float, float], n_training: int, expected: str
) -> None:
    test = {"kind": "increasing", "values": [{"measure": "m", "row": "a"}, {"measure": "m", "row": "b"}]}
    assert outcome(test, two_probes(values, gains, n_training)) == expected


def test_the_training_data_of_a_verdict_are_those_of_the_probe_with_the_fewest() -> None:
    above = {"kind": "any row", "measure": "m", "baseline": "zero", "rows": ["a", "b"]}
    data = two_probes((0.5, 0.6), (0.0, 0.0)).model_copy(
        update={
            "baselines": {"zero": {"m": estimates([0.0, 0.0], 0.01)}},
            "attributes": {"training sentences": (800, 300)},
        }
    )
    assert judge(claim(above), {"": result(data)}).n_training == 300


def test_a_control_that_was_not_measured_says_how_to_measure_it() -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": 0.0}
    verdict = judge(claim(test), {"": result(curve(RISING))}, untrained_remedy="record it")
    assert verdict.label == "holds, untrained model not measured"
    assert "An untrained model was not measured: record it." in write_answer(claim(test), verdict)
    assert verdict.as_record()["controls"][0]["remedy"] == "record it"
    assert "not measured:" not in answer(test, curve(RISING))


def changing(value: float, change: float, n_training: int = 500, half: float = 0.01) -> dict[str, Any]:
    """A difference of two probes and its change from half the training data, as the fields of a shape."""
    measures = {"m": estimates([value], half), change_measure("m"): estimates([change], half / 2)}
    return {"measures": measures, "baselines": {"zero": measures}, "sample": {"training examples": n_training}}


@pytest.mark.parametrize(
    ("value", "change", "n_training", "expected"),
    [
        (0.1, 0.0, 500, "holds"),  # flat
        (0.1, 0.05, 500, "holds"),  # it grows with more data
        (0.1, -0.03, 500, "inconclusive"),  # five more doublings would take it away
        (0.3, -0.03, 500, "holds"),
        (0.1, 0.0, 50, "inconclusive"),
        (-0.1, 0.0, 500, "fails"),
        (-0.1, -0.05, 500, "fails"),
        (-0.1, 0.03, 500, "inconclusive"),
        (-0.1, 0.0, 50, "inconclusive"),
    ],
)
def test_a_difference_of_probes_decides_only_if_it_is_flat(
    value: float, change: float, n_training: int, expected: str
) -> None:
    above = {"kind": "greater", "left": {"measure": "m", "row": "a"}, "right": 0.0}
    table = Table(row_names=("a",), **changing(value, change, n_training))
    assert outcome(above, table) == expected
    curve = Curve(x_name="training examples", x=np.array([500.0]), **changing(value, change, n_training))
    at_full_data = {"kind": "greater", "left": {"measure": "m", "x_fraction": 1.0}, "right": 0.0}
    assert outcome(at_full_data, curve) == expected
    verdict = judge(claim(above), {"": result(table)})
    assert (verdict.n_training, verdict.training_unit) == (n_training, "examples")
    assert bool(verdict.caveats) == (expected == "inconclusive")


def test_a_change_that_was_not_measured_decides_nothing() -> None:
    """Learning curves have it with full data only."""
    fields = changing(0.1, np.nan)
    curve = Curve(x_name="training examples", x=np.array([100.0]), **fields)
    assert outcome({"kind": "greater", "left": {"measure": "m", "x": 0.0}, "right": 0.0}, curve) == "holds"


@pytest.mark.parametrize(
    ("value", "change", "expected"),
    [
        (0.0, 0.0, "holds"),
        (0.05, 0.03, "inconclusive"),
        (-0.05, -0.03, "inconclusive"),
        (0.05, -0.01, "holds"),
        (0.3, 0.0, "fails"),
        (-0.3, 0.0, "fails"),
        (0.3, -0.05, "inconclusive"),
        (-0.3, 0.05, "inconclusive"),
        (0.3, 0.05, "fails"),
        (-0.3, -0.05, "fails"),
    ],
)
def test_a_difference_within_a_range_must_stay_there(value: float, change: float, expected: str) -> None:
    between = {"kind": "between", "value": {"measure": "m", "row": "a"}, "low": -0.1, "high": 0.1}
    assert outcome(between, Table(row_names=("a",), **changing(value, change))) == expected
