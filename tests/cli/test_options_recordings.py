"""`--recording` of `run`, `claims` and `report`: no model is loaded; what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import bertology


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("recordings")
    models = {"model": "tiny", "against": "random:tiny@1", "untrained": "random:tiny"}
    for name, model in models.items():
        completed = bertology(
            "record", model, "english", "--limit", "12", "--sites", "attention", "-o", str(root / name)
        )
        assert completed.status == 0, completed.err
    return {name: str(root / name) for name in models}


def test_two_recordings_are_compared(folders: dict[str, str]) -> None:
    arguments = ("--recording", folders["model"], "--against-recording", folders["against"])
    completed = bertology("run", "attention/model_similarity", *arguments, "--json")
    assert completed.status == 0, completed.err
    result = json.loads(completed.out)
    assert result["inputs"]["against"]["model"]["name"] == "random:tiny@1"
    direct = bertology(
        "run", "attention/model_similarity", "-m", "tiny", "--against", "random:tiny@1", "--limit", "12",
        "--no-random-baseline", "--json",
    )  # fmt: skip
    for measure, estimates in json.loads(direct.out)["data"]["measures"].items():
        for one, other in zip(estimates["value"], result["data"]["measures"][measure]["value"], strict=True):
            assert one == pytest.approx(other, abs=1e-4, nan_ok=True)


def test_the_untrained_model_is_a_baseline_and_limit_takes_the_first_examples(folders: dict[str, str]) -> None:
    arguments = ("--recording", folders["model"], "--untrained-recording", folders["untrained"], "--limit", "5")
    result = json.loads(bertology("run", "attention/entropy", *arguments, "--json").out)
    assert "untrained model" in result["baselines"]
    assert result["inputs"]["model"]["inputs"] == 5


def test_a_report_is_written_from_recordings(folders: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    arguments = ("--recording", folders["model"], "--untrained-recording", folders["untrained"])
    completed = bertology("report", *arguments, "-o", str(file))
    assert completed.status == 0, completed.err
    text = file.read_text("utf-8")
    assert "What <em>tiny</em> looks at, and what it knows" in text
    assert "data-bertology-payload" in text, "the attention view"
    assert "runs the model, and a recording cannot be run" in text


def test_claims_of_one_paper_are_tested_on_a_recording(folders: dict[str, str]) -> None:
    completed = bertology("claims", "--recording", folders["model"], "--paper", "vig2019deconstructing", "--json")
    assert completed.status == 0, completed.err
    verdicts = {claim["id"]: claim for claim in json.loads(completed.out)["claims"]}
    assert verdicts["pattern-related-words-across"]["verdict"] == "not applicable"
    assert "bertology record MODEL diagnostic" in verdicts["pattern-related-words-across"]["obstacle"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--corpus", "english"), "Both --recording and --corpus were given"),
        (("--model", "tiny"), "Both --recording and a model were given"),
        (("--against", "tiny", "--against-recording", "{against}"), "Both --against-recording and --against"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    folders: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    given = [argument.format(**folders) for argument in arguments]
    completed = bertology("run", "attention/entropy", "--recording", folders["model"], *given)
    assert completed.status == 2 and message in " ".join(completed.err.split())


def test_a_recording_to_compare_with_needs_another_one(folders: dict[str, str]) -> None:
    completed = bertology("claims", "--against-recording", folders["against"])
    assert completed.status == 2 and "Add --recording DIR" in completed.err
