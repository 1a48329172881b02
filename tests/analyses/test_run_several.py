"""`bertology.run` with several analyses, models or partners: one pass, the numbers of single runs, and the command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.encoder.encoder import Encoder
from bertology.results.result import Result
from bertology.results.results import Results
from command import bertology as command

NOUNS = ("cat", "man", "dog")
TEXTS = [f"The {noun} saw the old {other} near the river." for noun in NOUNS for other in ("boat", "house")]
ANALYSES = ["attention/entropy", "attention/targets", "geometry/contextuality"]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the forward passes of each model, in batches; a model that is being loaded makes one as a check."""
    encoder = bertology.load("tiny")
    counts = Counter[str]()
    forward = type(encoder).forward

    def counted(self: Encoder, *arguments: Any, **options: Any) -> Any:
        counts[self.name] += 1
        return forward(self, *arguments, **options)

    monkeypatch.setattr(type(encoder), "forward", counted)
    return counts


def test_several_analyses_take_one_pass_and_give_the_numbers_of_single_runs(passes: Counter[str]) -> None:
    encoder = bertology.load("tiny")
    passes.clear()
    results = bertology.run(ANALYSES, encoder, TEXTS)
    assert passes["tiny"] == 1
    assert list(results) == ANALYSES and isinstance(results, Results)
    for name in ANALYSES:
        single = bertology.run(name, encoder, TEXTS)
        columns = ["value", "low", "high", "n"]
        np.testing.assert_allclose(results[name].to_pandas()[columns], single.to_pandas()[columns], atol=1e-6)
        assert results[name].options == single.options and results[name].inputs == single.inputs
    assert passes["tiny"] == 4


def test_an_analysis_is_also_named_by_a_part_of_its_name() -> None:
    results = bertology.run(ANALYSES[:2], "tiny", TEXTS)
    assert results["entropy"] is results["attention/entropy"]
    with pytest.raises(bertology.Refusal, match="attention/entropy"):
        results["perplexity"]


def test_each_analysis_takes_the_options_it_has_and_others_are_refused() -> None:
    results = bertology.run(ANALYSES[::2], "tiny", TEXTS, min_occurrences=3)
    assert results["contextuality"].options["min_occurrences"] == 3
    assert "min_occurrences" not in results["entropy"].options
    with pytest.raises(bertology.Refusal, match="option of attention/entropy, attention/targets"):
        bertology.run(ANALYSES[:2], "tiny", TEXTS, sead=3)


def test_an_analysis_that_does_not_fit_is_refused_before_any_pass(passes: Counter[str]) -> None:
    encoder = bertology.load("tiny")
    passes.clear()
    with pytest.raises(bertology.Refusal, match="governors"):
        bertology.run(["attention/entropy", "heads/dependency"], encoder, TEXTS)
    assert not passes


def test_several_models_give_results_by_model_and_one_table() -> None:
    models = ["tiny", "random:tiny@3"]
    results = bertology.run("attention/entropy", models, TEXTS)
    assert list(results) == models and isinstance(results["tiny"], Result)
    frame = results.to_pandas()
    assert set(frame["model"]) == set(models) and len(frame) == 2 * len(results["tiny"].to_pandas())
    nested = bertology.run(ANALYSES[:2], models, TEXTS)
    assert nested["attention/entropy"]["tiny"].to_json() == results["tiny"].to_json()
    assert nested.table().models == tuple(models)
    assert {row.analysis for row in nested.table().rows} == set(ANALYSES[:2])


def test_models_of_one_name_are_numbered() -> None:
    results = bertology.run("attention/entropy", [bertology.load("tiny"), "tiny"], TEXTS)
    assert list(results) == ["tiny", "tiny (2)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["attention/entropy"],), "neither a recording nor both a model and a corpus"),
        (([], "tiny", TEXTS), "No analysis"),
        (("attention/entropy", [], TEXTS), "list of models is empty"),
        (("attention/entropy", 3, TEXTS), "model"),
        (("attention/entropy", "tiny", 3), "corpus"),
    ],
)
def test_what_is_missing_or_of_a_wrong_type_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(bertology.Refusal, match=message):
        bertology.run(*arguments)


def test_python_equals_the_command(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS) + "\n", "utf-8")
    shared = ("--corpus", str(file), "--no-store", "--json")
    one = command("run", "attention/entropy", "--model", "tiny", "--seed", "2", *shared)
    assert json.loads(one.out) == bertology.run("attention/entropy", "tiny", file, seed=2).to_json()
    several = command("run", *ANALYSES, "--model", "tiny", *shared)
    assert json.loads(several.out) == bertology.run(ANALYSES, "tiny", file).to_json()
    models = command("run", "attention/entropy", "--model", "tiny", "--model", "random:tiny@3", *shared)
    assert json.loads(models.out) == bertology.run("attention/entropy", ["tiny", "random:tiny@3"], file).to_json()


def test_the_command_prints_several_models_as_one_table(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS) + "\n", "utf-8")
    models = ("--model", "tiny", "--model", "random:tiny@3")
    completed = command("run", "attention/entropy", *models, "--corpus", str(file), "--no-store")
    assert completed.status == 0, completed.err
    header = next(line for line in completed.out.splitlines() if line.strip().startswith("measure"))
    assert header.split() == ["measure", "tiny", "random:tiny@3"]
    assert "highest head" in completed.out and "untrained model" in completed.out
    refused = command("run", "attention/entropy", *models, "--corpus", str(file), "--figure", "figure.svg")
    assert refused.status == 2 and "--figure" in refused.err
