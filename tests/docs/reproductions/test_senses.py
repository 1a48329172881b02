"""The script runs on any model and corpus with senses, and the page cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import planted_senses
from bertology.corpus.read import load_corpus
from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "senses.py"
PAGE = SCRIPT.with_name("senses.md")
NUMBER = re.compile(r"\d+\.\d+")


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("senses")
    monkeypatch.setattr(module, "PAGE", copy)
    corpus = planted_senses.sentences_with(load_corpus("english"), "bank", "match")
    monkeypatch.setattr(module, "load_corpus", {"english": corpus}.get)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "tiny", "--n-seeds", "1", "--write"])
    module.main()
    text, numbers = split_page(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == split_page(PAGE)[0]
    for title in (
        "Compared with the paper",
        "By layer, tiny",
        "By the number",
        "By word",
        "Projections",
        "Concatenation",
    ):
        assert f"### {title}" in numbers
    by_layer = numbers.split("### By layer, tiny")[1].split("###")[0]
    # The rest of the title, a blank line, the two header lines, three layers and the last four.
    assert len(by_layer.strip().splitlines()) == 2 + 2 + 4


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))


def test_the_published_numbers_are_in_the_tables() -> None:
    for number in ("54.8", "76.5", "80.1", "81.2", "60.9"):
        assert number in split_page(PAGE)[1]
