"""The script runs on any model and NER corpora, and the page cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "properties.py"
PAGE = SCRIPT.with_name("properties.md")
NUMBER = re.compile(r"[+-]\d+\.\d+")


def _write_entities(file: Path, n_sentences: int, verb: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    sentences: list[str] = []
    for number in range(n_sentences):
        person, location = ("king", "queen")[number % 2], ("london", "paris")[number % 2]
        longer = "city I-LOC\n" if number % 3 == 0 else ""
        sentences.append(f"the O\n{person} B-PER\n{verb} O\n{location} B-LOC\n{longer}")
    file.write_text("\n".join(sentences), "utf-8")


def test_the_script_writes_its_tables_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, verb in (
        ("crossner-politics/train.txt", "saw"),
        ("crossner-politics/test.txt", "left"),
        ("wnut17train.conll", "saw"),
        ("emerging.dev.conll", "left"),
    ):
        _write_entities(tmp_path / name, 24, verb)
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("properties")
    monkeypatch.setattr(module, "PAGE", copy)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "tiny", str(tmp_path), "--n-seeds", "1", "--write"])
    module.main()
    text, numbers = split_page(copy)
    assert text == split_page(PAGE)[0]
    assert numbers.count("structural complexity: upper - lower half") == 2


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))
