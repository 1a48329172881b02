"""Presets: every paper's options exist, explicit options win, published numbers stand beside the measured ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

import bertology
import planted
from bertology.analyses import registry
from bertology.analyses.head_selection.selection import BEST_ACCURACY
from bertology.analyses.heads.antecedent_confusion.analysis import CONFUSION
from bertology.analyses.heads.antecedent_confusion.stimuli import CONDITION_LABELS
from bertology.analyses.presets import Preset, all_presets, find_preset, format_flags, published_numbers
from bertology.analyses.run import RunInputs, run_analysis
from bertology.cli.run import parse_analysis_options
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Shape, Table
from command import bertology as run_command
from shared_data import shared

TEXTS = ("a , b ` c .", "d e f - g .", "h i j k l")


def wrap(data: Shape) -> Result:
    return Result(analysis="x", version=1, options={}, inputs={}, n=1, data=data, provenance={})


def preset(**numbers: object) -> Preset:
    return Preset(
        paper="clark2019",
        analysis="x",
        options={},
        definitions="",
        inputs="",
        source="",
        **numbers,  # pyright: ignore[reportArgumentType]
    )


@pytest.mark.parametrize("declared", all_presets(), ids=lambda p: f"{p.analysis} --like {p.paper}")
def test_the_options_of_a_preset_are_options_of_its_analysis(declared: Preset) -> None:
    analysis = registry.get(declared.analysis)
    assert declared.paper in analysis.citations
    resolved = analysis.resolve_options(declared.options)
    for name, value in declared.options.items():
        option = analysis.options[name]
        assert value in option.choices or isinstance(value, type(option.default)), name
        assert resolved[name] == value
    flags = format_flags(declared.options)
    assert parse_analysis_options([analysis], flags.split(), None) == dict(declared.options)  # pyright: ignore[reportArgumentType]
    assert not declared.definitions.endswith(".") and declared.inputs and declared.source


def test_published_layers_are_those_of_a_model_of_twelve() -> None:
    for declared in all_presets():
        assert all(len(numbers) == 12 for numbers in declared.by_layer.values())
        assert all(re.fullmatch(r"\d+-\d+", name) for heads in declared.by_head.values() for name in heads)


@pytest.mark.parametrize("name", ["attention/targets", "attention/entropy", "attention/pattern_classes"])
def test_published_measures_are_measures_of_the_analysis(name: str) -> None:
    analysis = registry.get(name)
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [[planted.uniform_head, planted.random_head(1)]])
    for declared in all_presets():
        if declared.analysis == name and (declared.by_layer or declared.by_row):
            result = run_analysis(analysis, RunInputs(recording=recording), declared.options)
            numbers = published_numbers(result, declared)
            assert numbers and all(number.here is not None for number in numbers)


def test_published_accuracies_of_heads_are_those_of_the_best_head() -> None:
    """Papers select and evaluate heads on the same sentences."""
    for name in ("heads/dependency", "heads/coreference"):
        assert [*find_preset(registry.get(name), "clark2019").by_row] == [BEST_ACCURACY]
    confusion = find_preset(registry.get("heads/antecedent_confusion"), "lin2019").by_row[CONFUSION]
    assert {row.split()[0]: row.split(" ", 1)[1] for row in confusion}.items() <= CONDITION_LABELS.items()


def test_layers_are_compared_at_the_same_relative_depth() -> None:
    published = preset(by_layer={"share": tuple(i / 12 for i in range(1, 13))})

    def rows(n_layers: int) -> list[str]:
        grid = HeadGrid(
            measures={"share": Estimates.exact(np.ones((n_layers, 2)))},
            baselines={"zero": {"share": Estimates.exact(np.zeros((n_layers, 2)))}},
        )
        return [number.published_row for number in published_numbers(wrap(grid), published)]

    assert rows(12) == [f"layer {i}" for i in range(1, 13)]
    assert rows(6) == ["layer 1", "layer 3", "layer 5", "layer 7", "layer 9", "layer 11"]
    assert rows(24)[::2] == rows(24)[1::2] == rows(12)


def test_rows_and_heads_that_are_missing_have_a_published_number_only() -> None:
    heads = preset(by_head={"share": {"2-1": 0.5}})
    for shape, here in (((12, 12), 1.0), ((12, 16), None)):
        ones, zeros = Estimates.exact(np.ones(shape)), Estimates.exact(np.zeros(shape))
        grid = HeadGrid(measures={"share": ones}, baselines={"zero": {"share": zeros}})
        (number,) = published_numbers(wrap(grid), heads)
        assert (number.row, number.published, number.here and number.here.value) == ("head 2-1", 0.5, here)
    ones, zeros = Estimates.exact(np.ones(2)), Estimates.exact(np.zeros(2))
    table = Table(measures={"UAS": ones}, baselines={"zero": {"UAS": zeros}}, row_names=("a", "b"))
    rows = published_numbers(wrap(table), preset(by_row={"UAS": {"b": 0.5, "c": 0.25}}))
    assert [number.here and number.here.value for number in rows] == [1.0, None]


def test_explicit_options_win() -> None:
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [[planted.uniform_head]])
    like = bertology.run("attention/targets", recording=recording, like="clark2019")
    otherwise = bertology.run("attention/targets", recording=recording, like="clark2019", punctuation="all")
    default = bertology.run("attention/targets", recording=recording)
    assert [result.options["punctuation"] for result in (like, otherwise, default)] == [".,", "all", "all"]
    values = [result.data.measures["attention to punctuation"].value[0, 0] for result in (like, otherwise, default)]  # pyright: ignore[reportAttributeAccessIssue]
    assert values[0] < values[1] == values[2]
    assert like.provenance["like"]["replaced"] == {}
    assert otherwise.provenance["like"]["replaced"] == {"punctuation": "all"}
    first = like.provenance["like"]["published"][0]
    assert (first["measure"], first["row"], first["published"]) == ("attention to [CLS]", "layer 1", 0.02)
    assert Result.from_json(like.to_json()).provenance == like.provenance


def test_unknown_combinations_are_refused_in_words() -> None:
    with pytest.raises(Refusal, match=r"no preset called 'clarke2019'.*Did you mean 'clark2019'"):
        find_preset(registry.get("attention/targets"), "clarke2019")
    with pytest.raises(Refusal, match=r"--like kovaleva2019 defines nothing for attention/entropy.*--like clark2019"):
        find_preset(registry.get("attention/entropy"), "kovaleva2019")
    with pytest.raises(Refusal, match=r"without --like: no paper"):
        find_preset(registry.get("attention/norms"), "clark2019")
    assert run_command("run", "attention/norms", "--like", "clark2019").status == 2


def test_the_command_prints_the_published_numbers_beside_ours() -> None:
    path = str(shared("data/bert-base-attention"))
    printed = run_command("run", "attention/targets", "--recording", path, "--like", "clark2019").out
    row = next(line for line in printed[printed.index("Definitions of clark2019") :].splitlines() if "layer 11" in line)
    # [CLS], [SEP], punctuation, from [SEP] to [SEP], from others to [SEP]: here, published
    assert row.split()[2:] == ["0.092", "0.03", "0.090", "0.06", "0.121", "0.51", "0.083", "0.07", "0.090", "0.06"]
    assert "at most 3 % from layer 5 on" in printed  # from the claims


def test_presets_are_listed_and_in_the_help() -> None:
    assert "attention/targets --like clark2019" in run_command("list", "presets").out
    assert "clark2019  --punctuation .,:" in run_command("run", "attention/targets", "--help").out
