"""`bertology.atlas`: models are judged once, what fails is told, and a resumed run writes the same bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.planted_claims import write_claims

import bertology
from bertology.atlas import build, workers
from bertology.atlas.judging import JudgingTask, judge_source
from bertology.atlas.schema import atlas_schema
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from bertology.progress import no_progress
from warm_processes import warm_workers


@pytest.fixture(autouse=True)
def quick_workers() -> Generator[None]:
    with warm_workers():
        yield


@pytest.fixture
def claims_file(tmp_path: Path) -> Path:
    return write_claims(tmp_path / "planted.toml")


def test_what_cannot_be_judged_is_named_and_a_resumed_atlas_is_the_same(tmp_path: Path, claims_file: Path) -> None:
    """One model of three cannot be loaded, and one is named twice; the second run judges what the first did not."""
    names = ["tiny", "no/such/model/here", "random:tiny@3", "tiny"]
    corpus = load_corpus("english", limit=12)
    task_arguments = {
        "papers": [], "claims": str(claims_file), "full": False, "train_size": None, "fill": True, "max_unknown": 1.0,
        "overflow": None, "limit": 12,
    }  # fmt: skip
    interrupted = JudgingTask(
        corpus, task_arguments, {"device": "cpu", "dtype": "float32", "allow_pickle": False}, tmp_path / "resumed"
    )
    judge_source("tiny", interrupted, no_progress)

    def write(store: str, file: str) -> build.Atlas:
        arguments: dict[str, Any] = {"claims": claims_file, "limit": 12, "max_unknown": 1.0, "store": tmp_path / store}
        return bertology.atlas(names, corpus, output=tmp_path / file, **arguments)

    content = write("resumed", "resumed.html")
    assert [model.name for model in content.models] == ["tiny", "random:tiny@3"]
    [failed] = content.not_judged
    assert failed.name == "no/such/model/here" and "There is no model" in failed.reason
    assert content.messages == ("tiny was given more than once; it is judged once.",)
    write("empty", "uninterrupted.html")
    assert (tmp_path / "resumed.html").read_bytes() == (tmp_path / "uninterrupted.html").read_bytes()
    write("empty", "again.json")
    record = json.loads((tmp_path / "again.json").read_text())
    Draft202012Validator(atlas_schema()).validate(record)
    verdicts = {(each["finding"], each["model"]): each for each in record["verdicts"]}
    narrow = verdicts["some-head-is-narrow", "tiny"]
    assert narrow["heads"] == 8 and narrow["random_best_head"] == pytest.approx(narrow["best_head"], abs=0.05)
    [entropy] = [each for each in record["differences"] if each["finding"] == "entropy-above-zero"]
    assert entropy["is_paired"] and entropy["first"] == "tiny"


def test_a_stored_model_is_found_without_loading_it(
    tmp_path: Path, claims_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: dict[str, Any] = {"claims": claims_file, "limit": 12, "max_unknown": 1.0, "store": tmp_path / "store"}
    first = bertology.atlas(["tiny"], "english", **arguments)
    monkeypatch.setattr(build, "judge_in_workers", None)
    assert bertology.atlas(["tiny"], "english", **arguments).models == first.models


def test_what_an_analysis_tests_is_left_out(tmp_path: Path, claims_file: Path) -> None:
    arguments: dict[str, Any] = {"claims": claims_file, "limit": 12, "max_unknown": 1.0, "store": tmp_path / "store"}
    content = bertology.atlas(["tiny"], "english", without="attention/targets", **arguments)
    assert [claim.id for claim in content.claims] == ["entropy-above-zero"]
    assert [finding.id for finding in content["tiny"].findings] == ["entropy-above-zero"]
    assert content.options["without"] == ["attention/targets"]
    with pytest.raises(Refusal, match="attention/target"):
        bertology.atlas(["tiny"], "english", without="attention/target", **arguments)
    with pytest.raises(Refusal, match="No finding was chosen"):
        bertology.atlas(["tiny"], "english", without=["attention/targets", "attention/entropy"], **arguments)


def test_a_killed_process_is_named_and_the_others_are_judged(
    tmp_path: Path, claims_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of one model ends in the middle, each time that it is tried."""
    monkeypatch.setattr(workers, "judge_task", judge_or_end)
    arguments: dict[str, Any] = {"claims": claims_file, "limit": 12, "max_unknown": 1.0, "store": tmp_path / "store"}
    content = bertology.atlas(["random:tiny@4", "tiny"], "english", engine="local:2", **arguments)
    assert [model.name for model in content.models] == ["tiny"]
    [failed] = content.not_judged
    assert failed.name == "random:tiny@4" and failed.is_failure and "ended with status 3" in failed.reason


def judge_or_end(task: JudgingTask, source: str, progress: Any) -> Any:
    if source == "random:tiny@4":
        os._exit(3)
    return judge_source(source, task, progress)


def test_mistakes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="The list of models is empty"):
        bertology.atlas([], "english")
    with pytest.raises(Refusal, match="says no format"):
        bertology.atlas(["tiny"], "english", output=tmp_path / "atlas.txt")
    with pytest.raises(Refusal, match="No model could be judged"):
        bertology.atlas(["no/such/model/here"], "english", papers="clark2019", limit=2)
