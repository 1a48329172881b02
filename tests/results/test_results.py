"""`Results`: a mapping by analysis or model, as one data frame and one JSON object."""

from __future__ import annotations

from bertology.results.result import Result
from bertology.results.results import Results, unique_names
from bertology.results.shapes import LayerCurve
from results.example_results import measures_and_baselines, result

RESULT = result(LayerCurve(**measures_and_baselines(2)))


def test_results_are_a_mapping_with_one_frame_and_one_json_object() -> None:
    results = Results({"a": RESULT, "b": RESULT}, "model")
    assert list(results) == ["a", "b"] and len(results) == 2 and results["a"] is RESULT
    assert repr(results) == "Results by model: a, b"
    assert set(results.to_pandas()["model"]) == {"a", "b"}
    assert [Result.from_json(record).to_json() for record in results.to_json()["results"]] == [RESULT.to_json()] * 2


def test_nested_results_are_listed_in_order() -> None:
    nested = Results(
        {"x": Results({"a": RESULT}, "model"), "y": Results({"a": RESULT, "b": RESULT}, "model")}, "analysis"
    )
    assert len(nested.all_results()) == 3
    frame = nested.to_pandas()
    assert set(zip(frame["analysis"], frame["model"], strict=True)) == {("x", "a"), ("y", "a"), ("y", "b")}


def test_repeated_names_are_numbered() -> None:
    assert unique_names(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
