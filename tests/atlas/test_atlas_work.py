"""The work of an atlas is that of one measured model, by the layers of the others and not by their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertology.atlas import atlas_work, build
from bertology.atlas.judged_model import NotJudged
from bertology.atlas.judging import JudgingTask
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from bertology.work_estimate import WorkEstimate


def model_folder(folder: Path, n_bytes: int, **config: object) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(bytes(n_bytes))
    return str(folder)


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first model takes 100 seconds and keeps 10 bytes."""

    def measure(model: str, task: JudgingTask) -> WorkEstimate:
        return WorkEstimate(100.0, 10.0)

    def too_long(task: JudgingTask, n_weights: int, n_models: int) -> float:
        return 1e6

    monkeypatch.setattr(atlas_work, "_estimate_model", measure)
    monkeypatch.setattr(atlas_work, "_rough_seconds", too_long)


def estimate(models: list[str], n_workers: int = 1) -> WorkEstimate:
    return atlas_work.estimate_atlas(models, JudgingTask(load_corpus("english", limit=2)), n_workers)


def test_models_count_by_their_layers_whatever_their_files(tmp_path: Path) -> None:
    """Twice the layers take twice the time and space; twice the width four times the time and twice the space."""
    first = model_folder(tmp_path / "first", 9_000, num_hidden_layers=4, hidden_size=8)
    deep = model_folder(tmp_path / "deep", 10, n_layers=8, dim=8)
    wide = model_folder(tmp_path / "wide", 10, n_layer=4, n_embd=16)
    assert estimate([first, deep, wide]) == WorkEstimate(700.0, 50.0)
    assert estimate([first, deep, wide], n_workers=4) == WorkEstimate(400.0, 50.0)  # that of the largest one


@pytest.mark.parametrize(
    "config", [{}, {"num_hidden_layers": "4", "hidden_size": 8}, {"num_hidden_layers": -4, "hidden_size": 8}]
)
def test_a_model_of_unknown_size_counts_like_the_measured_one(tmp_path: Path, config: dict[str, object]) -> None:
    first = model_folder(tmp_path / "first", 10, num_hidden_layers=4, hidden_size=8)
    unknown = model_folder(tmp_path / "unknown", 10, **config)
    assert estimate([first, unknown, "no/such/model"]) == WorkEstimate(300.0, 30.0)
    assert estimate([unknown, first]) == WorkEstimate(200.0, 20.0)


def test_a_model_that_cannot_be_measured_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_first(model: str, task: JudgingTask) -> WorkEstimate:
        if model.endswith("first"):
            raise Refusal("It is damaged", "a model", "Copy it again")
        return WorkEstimate(100.0, 10.0)

    monkeypatch.setattr(atlas_work, "_estimate_model", refuse_first)
    first = model_folder(tmp_path / "first", 10, num_hidden_layers=4, hidden_size=8)
    second = model_folder(tmp_path / "second", 10, num_hidden_layers=8, hidden_size=8)
    assert estimate([first, second]).seconds == 150.0
    assert estimate([first]) == WorkEstimate()


def test_several_workers_begin_with_the_largest_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (
        model_folder(tmp_path / name, 1, num_hidden_layers=layers, hidden_size=8)
        for name, layers in (("small", 2), ("large", 9))
    )
    assert atlas_work.sort_largest_first(["no/such/model", small, large]) == [large, small, "no/such/model"]
    orders: list[list[str]] = []

    def judge(sources: list[str], *_: object) -> dict[str, NotJudged]:
        orders.append(sources)
        return {source: NotJudged(name=source, reason="It was not tried.") for source in sources}

    monkeypatch.setattr(build, "judge_in_workers", judge)
    for engine in (None, "local:2"):
        with pytest.raises(Refusal, match=f"{small}: It was not tried. {large}: It was not tried."):
            build.atlas([small, large], "english", limit=2, engine=engine)
    assert orders == [[small, large], [large, small]]
