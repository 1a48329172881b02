"""The script runs on any model and treebank, and the page cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "structural_gte_small.py"
PAGE = SCRIPT.with_name("structural-gte-small.md")
NUMBER = re.compile(r"\d+\.\d+")
SETTINGS = {"0.01", "0.001"}
"""Learning rates: settings, not findings."""


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("structural_gte_small")
    monkeypatch.setattr(module, "PAGE", copy)
    arguments = ["tiny", "english", "english", "--train-size", "40", "--test-limit", "20", "--n-seeds", "1"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments, "--rank", "4", "--ranks", "--write"])
    module.main()
    text, numbers = split_page(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == split_page(PAGE)[0]
    for title in ("### By layer", "### Compared with the baselines", "### By rank, layer"):
        assert title in numbers
    by_layer = numbers.split("### By layer")[1].split("###")[0]
    assert len(by_layer.strip().splitlines()) == 2 + 3  # two header lines, the embeddings and two layers


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert set(NUMBER.findall(text)) - SETTINGS <= set(NUMBER.findall(numbers))
