"""`@analysis`: options and their limits come from the signature, and nothing else knows an analysis by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from annotated_types import Ge

import bertology
from bertology.analyses import registry
from bertology.analyses.declaration import REPORT_SECTIONS, Analysis, Option, analysis
from bertology.cli.list_command import list_command
from bertology.corpus.read import as_corpus
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.number_ranges import MAX_COUNT, NumberRange
from bertology.results.shapes import HeadGrid
from bertology.views.head_labels import labels_from_results
from bertology.views.report.content import AnalysisSection, ReportContent, ReportSubject
from bertology.views.report.page import report_page

ALL = list(registry.load_all())
AT_LEAST_ONE = {"batch_size", "epochs", "k", "n_seeds", "n_train_sizes", "steps"}


@pytest.mark.parametrize("declared", ALL, ids=lambda a: a.name)
def test_numbers_outside_of_the_range_are_refused(declared: Analysis) -> None:
    assert declared.resolve_options({}).keys() == declared.options.keys()
    for name, option in declared.options.items():
        if name in AT_LEAST_ONE:
            assert option.range is not None and option.range.minimum == 1, name
        if option.range is not None and option.range.is_whole:
            lowest = int(option.range.minimum)
            with pytest.raises(Refusal, match=f"--{option.flag} was given {lowest - 1}"):
                declared.resolve_options({name: lowest - 1})
            assert declared.resolve_options({name: lowest})[name] == lowest


def test_options_come_from_the_signature() -> None:
    @analysis(name="x/y", question="?", special_tokens="Special tokens: included.", citations=())
    def declared(
        *,
        n_seeds: Annotated[int, Ge(1), "how many seeds"] = 3,
        sample_size: Annotated[int, "how many examples"] = 3,
        layer: Annotated[int | Literal["auto"], "the layer"] = "auto",
        learning_rate: Annotated[float, "the rate"] = 0.1,
        verbose: Annotated[bool, "whether"] = False,
        show: Annotated[Literal["heads", "layers"], "what"] = "heads",
    ) -> HeadGrid:
        raise NotImplementedError

    ranges = {name: option.range for name, option in declared.options.items()}
    assert ranges["n_seeds"] == NumberRange(1, MAX_COUNT, is_whole=True)
    assert ranges["sample_size"] == NumberRange(0, MAX_COUNT, is_whole=True)
    assert ranges["layer"] == NumberRange(-MAX_COUNT, MAX_COUNT, is_whole=True)
    assert ranges["learning_rate"] == NumberRange() and ranges["verbose"] is ranges["show"] is None
    assert declared.options["layer"].parse("-1") == -1 and declared.options["layer"].parse("auto") == "auto"
    assert declared.options["show"].choices == ("heads", "layers")
    with pytest.raises(Refusal, match="type int or auto"):
        declared.options["layer"].parse("top")
    with pytest.raises(Refusal, match=r"from 1 to 1,000,000,000.*how many seeds"):
        declared.options["n_seeds"].validate(0)


@dataclass(frozen=True)
class Split:
    train_size: Annotated[int, Ge(1), "how many examples to train on"] = 10
    seed: Annotated[int, "the seed"] = 0


def test_the_fields_of_a_dataclass_are_options() -> None:
    received: list[tuple[str, Split]] = []

    @analysis(name="x/y", question="?", special_tokens="Special tokens: included.", citations=())
    def declared(*, label: Annotated[str, "the label"] = "pos", split: Split = Split(seed=7)) -> HeadGrid:
        received.append((label, split))
        ones = {"score": Estimates.exact(np.ones((1, 1)))}
        return HeadGrid(measures=ones, baselines={"chance": ones}, units={"score": "proportion, 0 to 1"})

    assert {name: option.default for name, option in declared.options.items()} == {
        "label": "pos",
        "train_size": 10,
        "seed": 7,
    }
    assert declared.options["train_size"].range == NumberRange(1, MAX_COUNT, is_whole=True)
    declared(train_size=3)
    assert received == [("pos", Split(train_size=3, seed=7))]
    with pytest.raises(Refusal, match="--train-size was given 0"):
        declared(train_size=0)
    with pytest.raises(Refusal, match="split"):
        declared(split=Split())


def test_an_option_needs_a_description_and_a_default() -> None:
    assert Option("seed", int, 0, "the seed").flag == "seed"

    def without_annotation(*, seed: int = 0) -> HeadGrid:
        raise NotImplementedError

    with pytest.raises(TypeError, match="description"):
        analysis(name="x/y", question="?", special_tokens="", citations=())(without_annotation)


PLUG_IN = '''
from typing import Annotated

import numpy as np

import bertology
from bertology.analyses.label_criteria import HeadLabelling, LabelCriterion
from bertology.estimates.estimate import Estimates
from bertology.results.shapes import HeadGrid


@bertology.analysis(
    name="attention/first_of_all",
    question="Is this head the first?",
    special_tokens="Special tokens: included.",
    citations=(),
    sites=("attention",),
    report_section="Further analyses",
    labels_heads=HeadLabelling(rank=1, criteria={"first": LabelCriterion(0.9)}),
)
def first_of_all(recording, *, seed: Annotated[int, "Random seed."] = 0) -> HeadGrid:
    """Planted: one for the first head and zero for all others."""
    layers, heads = recording["attention"][0].shape[:2]
    value = np.zeros((layers, heads))
    value[0, 0] = 1
    n = np.full(value.shape, 5)
    estimates = Estimates(value=value, low=value - 0.1, high=value + 0.1, n=n)
    return HeadGrid(
        measures={"first": estimates},
        baselines={"chance": {"first": Estimates.exact(np.full(value.shape, 0.5))}},
        units={"first": "proportion, 0 to 1"},
    )
'''


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A temporary package with one analysis, registered by its entry point."""
    (tmp_path / "a_plug_in.py").write_text(PLUG_IN, "utf-8")
    info = tmp_path / "a_plug_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plug-in\nVersion: 1.0\n", "utf-8")
    entry_points = "[bertology.analyses]\nattention/first_of_all = a_plug_in:first_of_all\n"
    (info / "entry_points.txt").write_text(entry_points, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.clear_caches()
    yield "attention/first_of_all"
    monkeypatch.undo()
    sys.modules.pop("a_plug_in", None)
    registry.clear_caches()


def test_a_new_analysis_appears_everywhere_without_a_change_to_another_file(
    plug_in: str, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = registry.get(plug_in)
    list_command("analyses")
    assert plug_in in capsys.readouterr().out
    result = bertology.run(plug_in, "tiny", as_corpus(["The cat sat.", "A dog ran."]))
    section = AnalysisSection(declared, result)
    page = report_page(ReportContent(ReportSubject("tiny"), messages=[], claim_results=[], sections=[section]))
    assert REPORT_SECTIONS[-1] in page and declared.question in page
    labels = labels_from_results([result], 2, 4)
    assert [(label.layer, label.head) for label in labels] == [(0, 0)]
    from docs import generate

    assert plug_in in generate.analyses_overview(registry.load_all())
    assert declared.description in generate.analysis_page(declared)
