"""The judge can say yes, no and neither, for every kind of test, from planted results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.claims.claim import Claim
from bertology.claims.judge import count_outcomes, judge
from bertology.claims.result_numbers import map_layers
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table


def estimates(values: Any, half: float) -> Estimates:
    array = np.asarray(values, float)
    return Estimates(value=array, low=array - half, high=array + half, n=np.full(array.shape, 9))


def result(data: Any) -> Result:
    return Result(analysis="a/b", version=1, options={}, inputs={}, n=9, data=data, provenance={})


def claim(test: dict[str, Any], **changed: Any) -> Claim:
    given: dict[str, Any] = {
        "id": "c",
        "statement": "f",
        "section": "p",
        "published_value": "x",
        "analysis": "a/b",
        "test": test,
    }
    return Claim(**{**given, **changed})


def outcome(test: dict[str, Any], data: Any, **changed: Any) -> str:
    return judge(claim(test, **changed), {"": result(data)}).outcome


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
def test_greater(half: float, early: list[int], late: list[int], expected: str) -> None:
    test = {"kind": "greater", "left": {"measure": "m", "layers": early}, "right": {"measure": "m", "layers": late}}
    assert outcome(test, curve(RISING, half)) == expected


def test_greater_by_a_margin_and_than_a_constant() -> None:
    test: dict[str, Any] = {"kind": "greater", "left": {"measure": "m", "layers": [12, 12]}, "right": 1.0}
    assert outcome(test, curve(RISING)) == "holds"
    assert outcome(test | {"margin": 0.5}, curve(RISING)) == "fails"


@pytest.mark.parametrize("value", [0.995, 1.005])
def test_a_point_on_the_wrong_or_the_right_side_alone_decides_nothing(value: float) -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": 1.0}
    assert outcome(test, curve([value] * 12)) == "inconclusive"


def test_than_a_baseline_of_the_same_layers() -> None:
    beside = {"measure": "m", "baseline": "b"}
    assert outcome({"kind": "greater", "left": {"measure": "m"}, "right": beside}, curve(RISING)) == "holds"
    assert outcome({"kind": "greater", "left": beside, "right": {"measure": "m"}}, curve(RISING)) == "fails"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.4, "holds"), (0.7, "fails"), (0.1, "fails"), (0.5, "inconclusive"), (0.495, "inconclusive")],
)
def test_between_and_sums(value: float, expected: str) -> None:
    data = table({"all": value}, {"all": 0.0})
    assert (
        outcome({"kind": "between", "value": {"measure": "m", "row": "all"}, "low": 0.3, "high": 0.5}, data) == expected
    )
    both = {"measure": "m", "added_measures": ["o"], "row": "all"}
    assert outcome({"kind": "between", "value": both, "low": 0.6, "high": 1.0}, data) == expected


def test_some_head_is_the_surest_one_of_all_and_widened_for_their_number() -> None:
    test = {"kind": "any head", "measure": "m", "threshold": 0.5, "baselines": ["b"]}
    flat = np.full((12, 12), 0.2)
    assert outcome(test, grid(flat)) == "fails"
    one = flat.copy()
    one[3, 4] = 0.9
    assert outcome(test, grid(one)) == "holds"
    assert outcome(test, grid(one, base=0.95)) == "fails"
    # An interval that reaches 0.5 only when it is widened for 144 heads does not decide.
    one[3, 4] = 0.6
    assert outcome(test, grid(one, half=0.09)) == "inconclusive"
    assert outcome(test, grid([[0.6]], half=0.09)) == "holds"


def test_noise_alone_does_not_make_a_head() -> None:
    generator = np.random.default_rng(0)
    test = {"kind": "any head", "measure": "m", "threshold": 0.5}
    found = [outcome(test, grid(0.5 + 0.05 * generator.normal(size=(12, 12)), half=0.098)) for _ in range(200)]
    assert found.count("holds") <= 10  # 2.5 % of draws are allowed to


def test_one_text_gives_no_interval_and_decides_nothing() -> None:
    values = np.full((12, 12), 0.2)
    values[3, 4] = 0.4
    alone = grid(values, half=float("nan"))
    for above in (0.1, 0.5):
        found = judge(claim({"kind": "any head", "measure": "m", "threshold": above}), {"": result(alone)})
        assert found.outcome == "inconclusive" and found.selected == (3, 4)
    # Nor can a head without an interval be passed over where all the others are clearly below.
    one = grid(values).measures["m"]
    unsure = one.model_copy(update={"high": np.where(values == 0.4, np.nan, one.high)})
    data = HeadGrid(measures={"m": unsure}, baselines={"b": {"m": one}})
    assert outcome({"kind": "any head", "measure": "m", "threshold": 0.5}, data) == "inconclusive"


def test_rows_that_are_missing_do_not_count() -> None:
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
    ("apart", "half", "by", "expected"),
    [
        (0.05, 0.02, 0.0, "holds"),
        (0.05, 0.06, 0.0, "inconclusive"),
        (-0.05, 0.02, 0.0, "fails"),
        (0.05, 0.02, 0.1, "fails"),
        (0.15, 0.02, 0.1, "holds"),
        (0.0, 0.0, 0.0, "inconclusive"),
    ],
)
def test_a_row_is_compared_by_its_difference_where_that_is_measured(
    apart: float, half: float, by: float, expected: str
) -> None:
    """The separate intervals overlap; they are reported and do not decide."""
    measures = {"m": estimates([0.8], 0.2), "d": estimates([apart], half)}
    data = Table(measures=measures, baselines={"b": {"m": estimates([0.75], 0.2)}}, row_names=("det",))
    test: dict[str, Any] = {"kind": "any row", "measure": "m", "baseline": "b", "rows": ["det"], "margin": by}
    assert outcome(test | {"margin": 0.0}, data) == "inconclusive"
    found = judge(claim(test | {"difference": "d"}), {"": result(data)})
    assert found.outcome == expected
    assert "det: 0.8 [0.6, 1] (b 0.75 [0.55, 0.95], difference" in found.reason
    assert ("needs more than 0.1 above the b" if by else "needs more than the b") in found.reason
    assert outcome(test | {"difference": "absent"}, data) == "not applicable"


def test_peak_in_the_middle() -> None:
    hill = [0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1]
    test = {"kind": "peak layer", "measure": "m", "layers": [5, 8]}
    assert outcome(test, curve(hill)) == "holds"
    assert outcome(test, curve(RISING)) == "fails"
    assert outcome(test, curve(hill, half=0.5)) == "inconclusive"
    assert outcome(test | {"lowest": True}, curve([-v for v in hill])) == "holds"
    assert outcome(test, grid(np.repeat(np.array(hill)[:, None], 4, axis=1))) == "holds"


def test_the_luckiest_of_many_layers_is_no_peak() -> None:
    """Intervals that lie apart by less than the widening for twelve layers decide nothing."""
    test = {"kind": "peak layer", "measure": "m", "layers": [5, 8]}
    barely = [0.49] * 5 + [0.515] + [0.49] * 6
    assert outcome(test, curve(barely)) == "inconclusive"
    assert outcome(test, curve([2 * value for value in barely])) == "holds"


def test_ordered_numbers() -> None:
    test = {"kind": "increasing", "values": [{"measure": "m", "row": row} for row in "abc"]}
    zero = dict.fromkeys("abc", 0.0)
    assert outcome(test, table({"a": 0.1, "b": 0.2, "c": 0.3}, zero)) == "holds"
    assert outcome(test, table({"a": 0.1, "b": 0.3, "c": 0.2}, zero)) == "fails"
    assert outcome(test, table({"a": 0.1, "b": 0.2, "c": 0.205}, zero)) == "inconclusive"


def test_peaks_in_order_of_several_runs() -> None:
    runs = {name: {"analysis": "a/b", "options": {"label": name}} for name in ("surface", "meaning")}
    test = {"kind": "peaks in order", "curves": [{"measure": "m", "run": name} for name in runs]}
    asked = claim(test, analysis=None, runs=runs)
    low, high = (result(curve([float(layer == at) for layer in range(12)])) for at in (1, 9))
    assert judge(asked, {"surface": low, "meaning": high}).outcome == "holds"
    assert judge(asked, {"surface": high, "meaning": low}).outcome == "fails"
    unsure = result(curve([0.5] * 12, half=0.3))
    assert judge(asked, {"surface": unsure, "meaning": high}).outcome == "inconclusive"
    alone = result(curve([0.5, *[0.1] * 11], half=float("nan")))
    assert judge(asked, {"surface": alone, "meaning": high}).outcome == "inconclusive"
    nowhere = judge(asked, {"surface": result(curve([float("nan")] * 12)), "meaning": high})
    assert nowhere.outcome == "not applicable" and "in any layer" in nowhere.reason


def test_a_matrix_is_read_by_row_and_column() -> None:
    measures = {"m": estimates([[0.1, 0.9], [0.2, 0.3]], 0.01)}
    data = Matrix(measures=measures, baselines={"b": measures}, row_names=("a", "b"), column_names=("c", "d"))
    test = {"kind": "greater", "left": {"measure": "m", "row": "a", "column": "d"}, "right": 0.5}
    assert outcome(test, data) == "holds"
    for place in ({"row": "x", "column": "d"}, {"row": "a", "column": "x"}, {"row": "a"}):
        found = judge(claim(test | {"left": {"measure": "m", **place}}), {"": result(data)})
        assert found.outcome == "not applicable" and "the result has no" in found.reason


def test_what_was_refused_or_not_measured_is_not_applicable_and_says_why() -> None:
    test = {"kind": "greater", "left": {"measure": "m"}, "right": 0.0}
    refusal = Refusal("No trees", "a treebank", "Give one")
    assert judge(claim(test), {"": refusal}).reason == str(refusal)
    absent = judge(claim({"kind": "greater", "left": {"measure": "x"}, "right": 0.0}), {"": result(curve(RISING))})
    assert absent.outcome == "not applicable" and "the result has no x" in absent.reason
    nowhere = curve([float("nan")] * 12)
    assert outcome(test, nowhere) == "not applicable"


def test_depth_is_mapped_by_where_layers_lie() -> None:
    assert list(map_layers((5, 10), 12, 12)) == [5, 6, 7, 8, 9, 10]
    assert list(map_layers((5, 10), 12, 8)) == [4, 5, 6, 7]
    assert list(map_layers((1, 4), 12, 24)) == list(range(1, 9))
    assert list(map_layers((12, 12), 12, 6)) == [6]
    assert list(map_layers((1, 1), 12, 2)) == [1]
    with_embeddings = curve([5.0] + [1.0] * 12, first=0)
    test = {"kind": "greater", "left": {"measure": "m", "layers": [0, 0]}, "right": {"measure": "m", "layers": [1, 12]}}
    assert outcome(test, with_embeddings) == "holds"


def test_a_claim_names_its_runs() -> None:
    with pytest.raises(ValueError, match="either `analysis` or `runs`"):
        claim({"kind": "greater", "left": {"measure": "m"}, "right": 0.0}, analysis=None)
    with pytest.raises(ValueError, match="unknown runs"):
        claim({"kind": "greater", "left": {"measure": "m", "run": "other"}, "right": 0.0})


@pytest.mark.parametrize(
    ("where", "expected"),
    [({"x": 64}, "holds"), ({"x_fraction": 1.0}, "holds"), ({"x": 2}, "fails"), ({"x_fraction": 0.25}, "holds")],
)
def test_a_number_along_a_curve_is_that_of_the_nearest_point(where: dict[str, float], expected: str) -> None:
    data = Curve(
        x_name="rank",
        x=np.array([1.0, 8.0, 64.0]),
        measures={"m": estimates([0.1, 0.6, 0.8], 0.01)},
        baselines={"b": {"m": estimates([0.0] * 3, 0)}},
    )
    test = {"kind": "greater", "left": {"measure": "m", **where}, "right": 0.5}
    verdict = judge(claim(test), {"": result(data)})
    assert verdict.outcome == expected
    nearest = {0.1: "at 1 rank", 0.6: "at 8 rank", 0.8: "at 64 rank"}
    assert any(told in verdict.reason for told in nearest.values())


@pytest.mark.parametrize(("share", "told"), [(1.0, "at 64 heads left is 0.8"), (0.5, "at 32 heads left is 0.6")])
def test_a_fraction_is_relative_to_the_largest_x_even_if_x_decreases(share: float, told: str) -> None:
    data = Curve(
        x_name="heads left",
        x=np.array([64.0, 32.0, 0.0]),
        measures={"m": estimates([0.8, 0.6, 0.1], 0.01)},
        baselines={"b": {"m": estimates([0.0] * 3, 0)}},
    )
    test = {"kind": "greater", "left": {"measure": "m", "x_fraction": share}, "right": 0.5}
    assert told in judge(claim(test), {"": result(data)}).reason


def test_a_missing_number_is_reported_with_the_requirements() -> None:
    test = {"kind": "greater", "left": {"measure": "gone"}, "right": 0.5}
    verdict = judge(claim(test, requirements=("a masked language model",)), {"": result(curve(RISING))})
    assert verdict.outcome == "not applicable"
    assert "the result has no gone" in verdict.reason and "It needs a masked language model." in verdict.reason


def test_outcomes_are_counted_in_singular_and_plural() -> None:
    assert (
        count_outcomes(["holds", "holds", "fails", "inconclusive", "inconclusive"]) == "2 hold, 1 fails, 2 inconclusive"
    )
    assert count_outcomes(["not applicable"]) == "1 not applicable"


def why(test: dict[str, Any], data: Any) -> str:
    return judge(claim(test), {"": result(data)}).reason


def test_a_verdict_names_layers_condition_and_sample_size() -> None:
    more = {
        "kind": "greater",
        "left": {"measure": "m", "layers": [10, 12]},
        "right": {"measure": "m", "layers": [1, 3]},
    }
    assert why(more, curve(RISING)) == (
        "m, layers 10-12 of 12 is 1.1 [1.09, 1.11]; the claim needs more than m, layers 1-3 of 12, "
        "0.2 [0.19, 0.21] (n = 9)."
    )
    eight = curve(RISING[:8])
    assert why(more, eight).startswith("m, layers 10-12 of 12 (this model: 7-8) is 0.75")
    first = {"kind": "greater", "left": {"measure": "m", "layers": [0, 0]}, "right": 0.5, "margin": -0.1}
    assert why(first, curve([0.3, *RISING], first=0)) == (
        "m, embeddings is 0.3 [0.29, 0.31]; the claim needs no more than 0.1 below 0.5 (n = 9)."
    )
    both = {"kind": "between", "value": {"measure": "m", "added_measures": ["o"], "row": "a"}, "low": 0.0, "high": 1.0}
    assert why(both, table({"a": 0.3}, {"a": 0.0})) == ("m + o, a is 0.6 [0.58, 0.62]; the claim needs 0 to 1 (n = 9).")


def test_a_verdict_reports_the_corrected_intervals() -> None:
    """Those of the best of many hold for all of them at once, and are wider than each one's own."""
    reason = why({"kind": "any head", "measure": "m", "threshold": 0.5}, grid(np.full((12, 12), 0.6), half=0.09))
    assert reason == (
        "head 1-1: m is 0.6 [0.436, 0.764] (interval corrected for 144 heads); the claim needs more than 0.5 (n = 9)."
    )
    hill = [0.1, 0.2, 0.3, 0.5, 0.8, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1]
    reason = why({"kind": "peak layer", "measure": "m", "layers": [5, 8]}, curve(hill, half=0.1))
    assert reason == (
        "m: highest of layers 5-8 is 0.9 [0.754, 1.05] at layer 6; highest of the other layers is "
        "0.5 [0.354, 0.646] at "
        "layer 4 (intervals corrected for 12 layers); the claim needs the first to be higher (n = 9)."
    )


def test_a_model_without_layers_has_none_to_compare() -> None:
    """Static vectors are embeddings alone."""
    test = {"kind": "greater", "left": {"measure": "m", "layers": [1, 12]}, "right": 0.5}
    found = judge(claim(test), {"": result(curve([0.7], first=0))})
    assert found.outcome == "not applicable" and "no layers above its embeddings" in found.reason
    assert outcome(test | {"left": {"measure": "m", "layers": [0, 0]}}, curve([0.7], first=0)) == "holds"
