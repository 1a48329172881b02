"""The script measures any model on any treebank and writes its tables; the page tells no number that is not in them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "sentence_tasks.py"
PAGE = SCRIPT.with_name("sentence-tasks.md")
NUMBER = re.compile(r"\d+\.\d+")
SETTINGS = {"0.01"}
"""Biases of the paper's untrained model, which are no findings."""


def test_the_script_measures_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, copy = tmp_path / "tasks.json", tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("sentence_tasks")
    monkeypatch.setattr(module, "PAGE", copy)
    words = ["tiny", "english", "--tasks", "bigram_shift", "--limit", "80", "--seeds", "1", "-o", str(kept)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
    module.main()
    measured = json.loads(kept.read_text("utf-8"))["tasks"]["bigram_shift"]
    assert set(measured) == {"cls", "mean"}
    assert len(measured["cls"]["accuracy"]["value"]) == len(measured["cls"]["random weights"]["value"]) == 3
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--from", str(kept), "--write"])
    module.main()
    text, numbers = parts(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == parts(PAGE)[0]
    for heading in ("### The tasks", "### By layer, [CLS]", "### By layer, the mean", "### Beside the paper"):
        assert heading in numbers


def test_without_a_model_it_says_what_to_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    with pytest.raises(SystemExit):
        script("sentence_tasks").main()
    assert "--from" in capsys.readouterr().err


def test_curves_in_the_same_order_agree() -> None:
    module = script("sentence_tasks")
    paper = module.JAWAHAR["tense"]
    assert all(len(row) == 12 for row in module.JAWAHAR.values())
    assert module._agreement([value / 100 for value in paper], paper) == "1.00"
    assert module._agreement(paper[:3], paper) == ""


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert set(NUMBER.findall(text)) - SETTINGS <= set(NUMBER.findall(numbers))
