"""The script runs on any model and treebank, and the page's text has no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "structural_gte_small.py"
PAGE = SCRIPT.with_name("structural-gte-small.md")
NUMBER = re.compile(r"\d+\.\d+")
SETTINGS = {"0.01", "0.001"}
"""Rates, which are no findings."""


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("structural_gte_small")
    monkeypatch.setattr(module, "PAGE", copy)
    words = ["tiny", "english", "english", "--train-limit", "40", "--test-limit", "20", "--seeds", "1", "--rank", "4"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words, "--ranks", "--write"])
    module.main()
    text, numbers = parts(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == parts(PAGE)[0]
    for heading in ("### By layer", "### Beside the baselines", "### By rank, layer"):
        assert heading in numbers
    by_layer = numbers.split("### By layer")[1].split("###")[0]
    assert len(by_layer.strip().splitlines()) == 2 + 3  # head, rule, embeddings and two layers


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert set(NUMBER.findall(text)) - SETTINGS <= set(NUMBER.findall(numbers))
