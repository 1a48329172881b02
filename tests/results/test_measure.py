"""Measures: indexed by head, layer and row as they are printed, ranked, and compared with baselines by intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.measure import Measure, match_name, parse_head
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Shape, Table
from results.example_results import SHAPES, result

PREVIOUS = "attention to previous token"
SHARES = np.array([[0.10, 0.80, 0.12], [0.30, 0.13, np.nan]])


def with_interval(value: object, margin: float = 0.05) -> Estimates:
    array = np.asarray(value, np.float64)
    n = np.where(np.isnan(array), 0, 20)
    return Estimates(value=array, low=array - margin, high=array + margin, n=n)


def planted(lowest: tuple[str, ...] = ()) -> Result:
    """Heads 1-2 and 2-1 attend to the previous token; 2-3 was not measured; the untrained model does at 0.2."""
    grid = HeadGrid(
        measures={
            PREVIOUS: with_interval(SHARES),
            "attention to next token": with_interval(SHARES[::-1]),
            "p": with_interval(SHARES),
        },
        baselines={
            "uniform attention": {PREVIOUS: Estimates.exact(np.full((2, 3), 0.1))},
            "untrained model": {PREVIOUS: with_interval(np.full((2, 3), 0.2), 0.04)},
        },
        lowest=lowest,
    )
    return result(grid)


def test_a_measure_is_found_by_name_prefix_or_part() -> None:
    planted_result = planted()
    for name in (PREVIOUS, PREVIOUS.upper(), "attention to p", "to previous", "p"):
        assert planted_result[name].name == (name if name == "p" else PREVIOUS)
    names = ["to previous token (no special tokens)", "to previous token", "to next token (no special tokens)"]
    assert match_name("measure", "previous", names) == "to previous token"
    assert match_name("measure", "next", names) == "to next token (no special tokens)"
    with pytest.raises(Refusal, match="3 measures"):
        match_name("measure", "token", names)
    with pytest.raises(Refusal, match=r"2 measures.*previous token, attention to next token"):
        planted_result["attention to"]
    with pytest.raises(Refusal, match="Did you mean 'attention to next token'"):
        planted_result["attention to nxt token"]
    for name in ("", 3, None):
        with pytest.raises(Refusal):
            planted_result[name]  # pyright: ignore[reportArgumentType]  # refused


def test_an_illustration_has_no_measures() -> None:
    with pytest.raises(Refusal, match="no measures"):
        result(SHAPES["Scatter"])["x"]


def test_heads_and_layers_are_numbered_as_they_are_printed() -> None:
    measure = planted()[PREVIOUS]
    expected = Estimate(0.8, 0.75, 0.8500000000000001, 20)
    assert measure["1-2"] == measure[Head(0, 1)] == expected
    assert measure[1] == measure.estimates[0] and measure[2] == measure.estimates[1]
    for key in ("0-1", "3-1", "1-4", "1", "a-b", Head(2, 0), Head(-1, 0), 0, 3, -1, None, True, 1.0):
        with pytest.raises(Refusal):
            measure[key]


@pytest.mark.parametrize(
    ("name", "key", "index", "wrong"),
    [
        ("LayerCurve", 1, 0, (0, 6, "1", None)),
        ("LayerCurve", np.int64(5), 4, ()),
        ("Curve", 100, 2, (7, "100", None)),
        ("Curve", 1000.0, 3, ()),
        ("Table", "det", 0, ("d e t", 0, None)),
        ("Table", "东", 4, ()),
        ("Matrix", ("det", "东京"), (0, 4), (("det",), ("det", "x"), "x", 0)),
        ("Matrix", "东京", 4, ()),
    ],
)
def test_every_shape_is_indexed_by_what_it_prints(name: str, key: Any, index: Any, wrong: tuple[Any, ...]) -> None:
    measure = result(SHAPES[name])["mass"]
    assert measure[key] == measure.estimates[index]
    for other in wrong:
        with pytest.raises(Refusal):
            measure[other]


@pytest.mark.parametrize("name", ["HeadGrid", "LayerCurve", "Curve", "Matrix", "Table"])
def test_keys_give_back_their_numbers(name: str) -> None:
    measure = result(SHAPES[name])["mass"]
    assert len(measure) == len(list(measure)) == measure.estimates.value.size
    for key, estimate in measure.items():
        again = measure[key]
        assert (again.n, again.value) == (estimate.n, estimate.value) or np.isnan(estimate.value)


def test_the_best_and_worst_are_ranked_without_missing_values() -> None:
    measure = planted()[PREVIOUS]
    assert list(measure.best(2)) == ["1-2", "2-1"] and measure.best() == {"1-2": measure["1-2"]}
    assert list(measure.worst(2)) == ["1-1", "1-3"]
    assert len(measure.best(10)) == 5 and measure.best(0) == {}
    assert [measure.rank(head) for head in ("1-2", "2-1", "1-1", "2-3")] == [1, 2, 5, None]
    with pytest.raises(Refusal):
        measure.best(-1)


def test_the_lowest_is_best_where_that_is_declared() -> None:
    measure = planted(lowest=("p",))["p"]
    assert list(measure.best()) == ["1-1"] and list(measure.worst()) == ["1-2"] and measure.rank("1-1") == 1


def test_heads_above_a_baseline_are_clearly_above_it() -> None:
    measure = planted()[PREVIOUS]
    assert list(measure.above("untrained model")) == ["1-2", "2-1"]
    assert list(measure.above("uniform")) == ["1-2", "2-1"]  # 0.12 and 0.13 with 0.05 on either side include 0.1
    assert list(measure.above()) == ["1-2", "2-1"]
    assert list(measure.below("untrained model")) == ["1-1"]  # 1-1 reaches 0.15, the baseline begins at 0.16
    with pytest.raises(Refusal, match="no baseline called 'chance'"):
        measure.above("chance")


def test_nothing_is_above_without_a_baseline_or_an_interval() -> None:
    assert planted()["next"].above() == {}
    array = np.array([0.9])
    values = Estimates(value=array, low=np.array([np.nan]), high=np.array([np.nan]), n=np.array([1]))
    table = Table(measures={"m": values}, baselines={"b": {"m": Estimates.exact(np.zeros(1))}}, row_names=("a",))
    assert result(table)["m"].above() == {}


def test_few_heads_of_noise_are_above_a_baseline() -> None:
    """95 % intervals of 4,000 heads without an effect: 2.5 % lie above the true value, as many below."""
    generator = np.random.default_rng(0)
    samples = generator.normal(size=(40, 100, 50))
    mean, margin = samples.mean(-1), 1.96 * samples.std(-1, ddof=1) / np.sqrt(50)
    values = Estimates(value=mean, low=mean - margin, high=mean + margin, n=np.full(mean.shape, 50))
    grid = HeadGrid(measures={"m": values}, baselines={"zero": {"m": Estimates.exact(np.zeros(mean.shape))}})
    measure = result(grid)["m"]
    assert 0.015 < len(measure.above("zero")) / 4000 < 0.04 and 0.015 < len(measure.below("zero")) / 4000 < 0.04


def test_baselines_are_measures_too() -> None:
    baselines = planted()[PREVIOUS].baselines
    assert list(baselines) == ["uniform attention", "untrained model"]
    assert baselines["uniform attention"]["2-3"].value == 0.1 and isinstance(baselines["untrained model"], Measure)


def test_the_distance_is_that_to_the_closest_baseline() -> None:
    expected = [[0.0, 0.6, 0.02], [0.1, 0.03, np.nan]]
    np.testing.assert_allclose(planted()[PREVIOUS].distance(), expected, atol=1e-12)
    assert np.isnan(planted()["next"].distance()).all()


SMALL: list[Shape] = [
    shape for shape in SHAPES.values() if isinstance(shape, HeadGrid | LayerCurve | Curve | Matrix | Table)
]


@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: shape.shape)
def test_reprs_are_one_line(shape: HeadGrid | LayerCurve | Curve | Matrix | Table) -> None:
    measure = result(shape)["mass"]
    for value in (measure, measure.estimates, shape, next(iter(measure.best().values()))):
        assert len(repr(value).splitlines()) == 1 and len(repr(value)) < 300
    assert "highest" in repr(measure) and "untrained model" in repr(measure)


def test_names_and_heads_are_parsed_or_refused() -> None:
    assert match_name("baseline", "untrained", ["untrained model", "uniform attention"]) == "untrained model"
    assert parse_head(" 8-11 ") == Head(7, 10)
    for text in ("8", "8-", "0-1", "8-11-2", "", None, 8):
        with pytest.raises(Refusal, match="8-11"):
            parse_head(text)
