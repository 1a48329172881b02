"""The script runs on any model and corpus with senses, and the page's text has no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import sensed
from bertology.corpus.builtin import corpus_named
from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "senses.py"
PAGE = SCRIPT.with_name("senses.md")
NUMBER = re.compile(r"\d+\.\d+")


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("senses")
    monkeypatch.setattr(module, "PAGE", copy)
    few = sensed.only_with(corpus_named("english"), "bank", "match")
    monkeypatch.setattr(module, "corpus_named", {"english": few}.get)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "tiny", "--seeds", "1", "--write"])
    module.main()
    text, numbers = parts(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == parts(PAGE)[0]
    for heading in ("Beside the paper", "By layer, tiny", "By the number", "By word", "Maps of", "Joined to another"):
        assert f"### {heading}" in numbers
    by_layer = numbers.split("### By layer, tiny")[1].split("###")[0]
    assert (
        len(by_layer.strip().splitlines()) == 2 + 2 + 4
    )  # title and blank, head and rule, three layers, the last four


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))


def test_the_published_numbers_are_there() -> None:
    for number in ("54.8", "76.5", "80.1", "81.2", "60.9"):
        assert number in parts(PAGE)[1]
