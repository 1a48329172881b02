"""Checkpoints of a run are a series: a planted finding appears where it was planted."""

from __future__ import annotations

import pytest

from bertology.atlas.model_names import Checkpoint, find_checkpoint, seed_family_name, short_names
from planted_atlas import planted_atlas


@pytest.mark.parametrize(
    ("source", "checkpoint"),
    [
        ("mini@10%", Checkpoint("mini", 10.0, "%")),
        ("mini@0.5%", Checkpoint("mini", 0.5, "%")),
        ("runs/a/checkpoint-1300", Checkpoint("runs/a", 1300.0, "steps")),
        ("checkpoint-5", Checkpoint("checkpoints", 5.0, "steps")),
        ("mini", None),
        ("random:mini@3", None),
    ],
)
def test_names_of_checkpoints(source: str, checkpoint: Checkpoint | None) -> None:
    assert find_checkpoint(source) == checkpoint


@pytest.mark.parametrize(
    ("source", "family"),
    [("random:mini", "random:mini"), ("random:mini@2", "random:mini"), ("runs/seed-3", "runs"), ("mini", "")],
)
def test_names_of_seeds(source: str, family: str) -> None:
    assert seed_family_name(source) == family


def test_short_names_tell_models_apart() -> None:
    sources = ["/a/x/model", "/a/y/model", "mini", "random:/a/x/model"]
    assert short_names(sources) == ["x/model", "y/model", "mini", "random:model"]


def test_the_short_name_of_a_checkpoint_says_its_run() -> None:
    sources = ["/runs/a/checkpoint-5", "/runs/a/checkpoint-50", "/other/a/checkpoint-50", "checkpoint-7", "mini@10%"]
    expected = ["a/checkpoint-5", "runs/a/checkpoint-50", "other/a/checkpoint-50", "checkpoint-7", "mini@10%"]
    assert short_names(sources) == expected


def test_a_finding_appears_where_it_was_planted() -> None:
    effects = {
        "run@100%": {"early": 0.5, "late": 0.5, "lost": -0.5, "always": 0.5},
        "run@10%": {"early": 0.5, "late": -0.5, "lost": 0.5, "always": 0.5},
        "random:run": {"early": -0.5, "late": -0.5, "lost": -0.5, "always": 0.5},
        "run@1%": {"early": 0.5, "late": -0.5, "lost": 0.5, "always": 0.5},
        "other": {"early": 0.5, "late": 0.5, "lost": -0.5, "always": 0.5},
    }
    content = planted_atlas(effects, untrained=["random:run"])
    [run] = content.training_runs
    assert run.models == ("random:run", "run@1%", "run@10%", "run@100%") and run.progress == (0, 1, 10, 100)
    found = {each.finding: (each.after, each.by) for each in run.appearances}
    assert found == {"early": (0, 1), "late": (10, 100), "always": (None, 0)}
    assert [model.name for model in content.trained] == ["run@100%", "other"]
