"""The script writes its tables for any model and names; the page tells no number that is not in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "properties.py"
PAGE = SCRIPT.with_name("properties.md")
NUMBER = re.compile(r"[+-]\d+\.\d+")


def _names(file: Path, count: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    sentences: list[str] = []
    for number in range(count):
        who, where = ("king", "queen")[number % 2], ("london", "paris")[number % 2]
        longer = "city I-LOC\n" if number % 3 == 0 else ""
        sentences.append(f"the O\n{who} B-PER\nsaw O\n{where} B-LOC\n{longer}")
    file.write_text("\n".join(sentences), "utf-8")


def test_the_script_writes_its_tables_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "crossner-politics/train.txt",
        "crossner-politics/test.txt",
        "wnut17train.conll",
        "emerging.dev.conll",
    ):
        _names(tmp_path / name, 24)
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("properties")
    monkeypatch.setattr(module, "PAGE", copy)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "tiny", str(tmp_path), "--seeds", "1", "--write"])
    module.main()
    text, numbers = parts(copy)
    assert text == parts(PAGE)[0]
    assert numbers.count("complexity, upper - lower") == 2


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert set(NUMBER.findall(text)) - {"-0.59"} <= set(NUMBER.findall(numbers))
    assert "-0.59" in numbers
