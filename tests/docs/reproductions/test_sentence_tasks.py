"""The script runs on any model and treebank, and the page cites no number that is not in its tables."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "sentence_tasks.py"
PAGE = SCRIPT.with_name("sentence-tasks.md")
NUMBER = re.compile(r"\d+\.\d+")
SETTINGS = {"0.01"}
"""Biases of the paper's untrained model: a setting, not a finding."""


def test_the_script_measures_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results_file, copy = tmp_path / "tasks.json", tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("sentence_tasks")
    monkeypatch.setattr(module, "PAGE", copy)
    arguments = [
        "tiny",
        "english",
        "--tasks",
        "bigram_shift",
        "--limit",
        "80",
        "--n-seeds",
        "1",
        "-o",
        str(results_file),
    ]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    module.main()
    by_pooling = json.loads(results_file.read_text("utf-8"))["tasks"]["bigram_shift"]
    assert set(by_pooling) == {"cls", "mean"}
    assert len(by_pooling["cls"]["accuracy"]["value"]) == len(by_pooling["cls"]["untrained model"]["value"]) == 3
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--from", str(results_file), "--write"])
    module.main()
    text, numbers = split_page(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == split_page(PAGE)[0]
    for title in ("### The tasks", "### By layer, [CLS]", "### By layer, mean", "### Compared with the paper"):
        assert title in numbers


def test_without_a_model_the_script_asks_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    with pytest.raises(SystemExit):
        load_script("sentence_tasks").main()
    assert "--from" in capsys.readouterr().err


def test_equal_orders_of_layers_have_correlation_one() -> None:
    module = load_script("sentence_tasks")
    published = module.JAWAHAR["tense"]
    assert all(len(row) == 12 for row in module.JAWAHAR.values())
    assert module._spearman([value / 100 for value in published], published) == "1.00"
    assert module._spearman(published[:3], published) == ""


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert set(NUMBER.findall(text)) - SETTINGS <= set(NUMBER.findall(numbers))
