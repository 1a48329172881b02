"""`bertology doctor` finds nothing wrong here, and finds what is broken where something is."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bertology.cli import doctor
from command import bertology

ROOT = Path(__file__).parents[2]


def checks(tmp_path: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    completed = bertology("doctor", "--store", str(tmp_path / "store"), "--json")
    report = json.loads(completed.out)
    assert report["ok"] == (completed.status == 0)
    return completed.status, {check["name"]: check for check in report["checks"]}


def require(monkeypatch: pytest.MonkeyPatch, *requirements: str) -> None:
    def requires(distribution_name: str) -> list[str]:
        return list(requirements)

    monkeypatch.setattr(doctor.metadata, "requires", requires)


def known_number(device: str) -> float:
    return doctor.EXPECTED_ENTROPY


def test_everything_is_checked(tmp_path: Path) -> None:
    status, by_name = checks(tmp_path)
    assert status == 0
    assert {
        "python",
        "bertology",
        "torch",
        "transformers",
        "devices",
        "store",
        "plug-ins",
        "small run",
    } <= by_name.keys()
    assert by_name["torch"]["facts"]["version"] == metadata.version("torch")
    assert by_name["store"]["facts"]["path"] == str(tmp_path / "store")
    run = by_name["small run"]["facts"]
    assert abs(run["values"]["cpu"] - run["expected"]) < run["tolerance"]


def test_the_expected_number_is_that_of_plain_transformers() -> None:
    """Mean over heads and sentences of the mean entropy of a sentence's rows, from the attention of transformers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from bertology.corpus.read import load_corpus
    from bertology.encoder.builtin import MODELS

    model = AutoModel.from_pretrained(MODELS / doctor.RUN_MODEL, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(MODELS / doctor.RUN_MODEL)
    means: list[float] = []
    for example in load_corpus(doctor.RUN_CORPUS, limit=doctor.RUN_LIMIT):
        with torch.no_grad():
            inputs = tokenizer(example.segments[0].text, return_tensors="pt")
            attention = torch.stack(model(**inputs, output_attentions=True).attentions).double()
        means.append(float(torch.special.entr(attention).sum(-1).mean()))
    assert abs(sum(means) / len(means) - doctor.EXPECTED_ENTROPY) < doctor.TOLERANCE / 10


def test_a_wrong_number_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXPECTED_ENTROPY", doctor.EXPECTED_ENTROPY + 0.01)
    status, by_name = checks(tmp_path)
    assert status == 1 and [name for name, check in by_name.items() if check["state"] == "broken"] == ["small run"]


def test_a_library_of_another_version_or_absent_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = ["torch>=99", "numpy>=1.26", "a-missing-library>=1", "pandas>=2.0; extra == 'frames'"]
    requirements += ["another-missing-library; extra == 'figures'"]
    require(monkeypatch, *requirements)
    monkeypatch.setattr(doctor, "_small_run", known_number)
    status, by_name = checks(tmp_path)
    assert status == 1
    states = {name: by_name[name]["state"] for name in ("torch", "numpy", "a-missing-library")}
    assert states == {"torch": "broken", "numpy": "ok", "a-missing-library": "broken"}
    assert by_name["extra figures"]["state"] == "missing" and by_name["extra frames"]["state"] == "ok"
    assert "pip install 'bertology[figures]'" in by_name["extra figures"]["description"]


def test_a_missing_extra_alone_is_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(monkeypatch, "a-missing-library; extra == 'figures'")
    monkeypatch.setattr(doctor, "_small_run", known_number)
    assert checks(tmp_path)[0] == 0


def test_a_store_that_cannot_be_written_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").write_text("a file", "utf-8")
    monkeypatch.setattr(doctor, "_small_run", known_number)
    status, by_name = checks(tmp_path)
    assert status == 1 and by_name["store"]["state"] == "broken"


def test_a_failing_plugin_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"kind": "analysis", "package": "p", "version": "1", "problem": "ImportError: no"}
    monkeypatch.setattr(doctor, "plugin_rows", lambda: [("attention/x", row)])
    monkeypatch.setattr(doctor, "_small_run", known_number)
    status, by_name = checks(tmp_path)
    assert status == 1 and "ImportError: no" in by_name["plug-ins"]["description"]


def test_whatever_fails_the_other_checks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(device: str) -> float:
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(doctor, "_small_run", fail)
    completed = bertology("doctor", "--store", str(tmp_path))
    assert completed.status == 1 and "RuntimeError: no kernel image" in completed.out and "store" in completed.out


def test_every_extra_of_the_package_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["optional-dependencies"].keys() == doctor.EXTRAS.keys() | doctor.DEVELOPMENT_EXTRAS
