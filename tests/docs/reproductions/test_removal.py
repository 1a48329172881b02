"""The script runs on any model with a task head, and the page cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "removal.py"
PAGE = SCRIPT.with_name("removal.md")
NUMBER = re.compile(r"\d*\.\d+")
PUBLISHED = {"1.2", "0.4"}
"""Kovaleva et al.: the largest gain, and the weight of one example of their smallest test set, in points."""


@pytest.mark.slow
def test_a_model_becomes_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("removal")
    monkeypatch.setattr(module, "PAGE", copy)
    file = tmp_path / "tiny.json"
    command = ["measure", "tiny", "english", "--sample-size", "12", "--l0-penalties", "0.1", "-o", str(file)]
    for arguments in (command, ["page", str(file)]):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
        module.main()
    text, numbers = split_page(copy)
    assert text == split_page(PAGE)[0]
    for heading in ("### tiny on english", "**One head at a time**", "**A whole layer**", "**Pruning**", "**Gates**"):
        assert heading in numbers


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    cited = {float(number) for number in NUMBER.findall(re.sub(r"\(http\S+\)", "", text))}
    allowed = {float(number) for number in NUMBER.findall(numbers)} | {float(number) for number in PUBLISHED}
    assert cited <= allowed
