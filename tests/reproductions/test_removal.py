"""The script measures any model that has a task and writes its tables; the page tells no number that is not in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "removal.py"
PAGE = SCRIPT.with_name("removal.md")
NUMBER = re.compile(r"\d*\.\d+")
PUBLISHED = {"1.2", "0.4"}
"""Of Kovaleva et al.: the largest gain, and what one item of their smallest set is worth, in points."""


@pytest.mark.slow
def test_a_model_becomes_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("removal")
    monkeypatch.setattr(module, "PAGE", copy)
    file = tmp_path / "tiny.json"
    words = ["measure", "tiny", "english", "--items", "12", "--prices", "0.1", "-o", str(file)]
    for given in (words, ["page", str(file)]):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given])
        module.main()
    text, numbers = parts(copy)
    assert text == parts(PAGE)[0]
    for heading in ("### tiny on english", "**One head at a time**", "**A whole layer**", "**Pruning**", "**Gates**"):
        assert heading in numbers


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    told = {float(number) for number in NUMBER.findall(re.sub(r"\(http\S+\)", "", text))}
    known = {float(number) for number in NUMBER.findall(numbers)} | {float(number) for number in PUBLISHED}
    assert told <= known, told - known
