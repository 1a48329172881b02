"""The JSON schemas are schemas, and describe what the commands write."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator, ValidationError

import bertology
from bertology.results.shapes import HeadGrid, LayerCurve
from bertology.views.report.schemas import json_schemas
from results.example_results import measures_and_baselines, result


@pytest.mark.parametrize("command", ["run", "claims", "report"])
def test_schemas_are_valid(command: str) -> None:
    Draft202012Validator.check_schema(json_schemas()[command])


def test_results_fit_and_broken_ones_do_not() -> None:
    validator = Draft202012Validator(json_schemas()["run"])
    results = bertology.run(["attention/entropy", "attention/targets"], "tiny", ["Dogs bark.", "It rains."])
    validator.validate(results.to_json())
    for each in results.values():
        validator.validate(each.to_json())
    for data in (HeadGrid(**measures_and_baselines(2, 2)), LayerCurve(**measures_and_baselines(2))):
        assert set(result(data).to_json()) == set(json_schemas()["run"]["$defs"]["result"]["required"])
    with pytest.raises(ValidationError):
        validator.validate({**results["entropy"].to_json(), "n": "many"})
