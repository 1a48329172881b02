"""The page has the numbers its script computes, and cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page
from shared_data import shared

SCRIPT = FOLDER / "heads_bert_base.py"
PAGE = SCRIPT.with_name("heads-bert-base.md")
NUMBER = re.compile(r"-?\d+\.\d+")
LAST_DIGIT = 1.01


def test_the_page_has_the_numbers_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shared("data/bert-base-attention")
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(data), "--write", "--page", str(copy)])
    load_script("heads_bert_base").main()
    printed = capsys.readouterr().out.strip()
    assert printed in copy.read_text("utf-8")
    expected = split_page(PAGE)[1]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    for number, expected_number in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
        assert float(number) == pytest.approx(float(expected_number), abs=LAST_DIGIT / 10)


def test_the_text_has_no_other_numbers() -> None:
    text, numbers = split_page(PAGE)
    allowed = {float(number) for number in NUMBER.findall(numbers)} | {4.2}  # a section of the paper
    assert {float(number) for number in NUMBER.findall(text)} <= allowed


def test_the_published_heads_are_in_the_table() -> None:
    numbers = split_page(PAGE)[1]
    for head in ("det | 151 | 8-11 d-g", "amod | 133 | 4-10 d-g", "aux | 22 | 4-10 d-g"):
        assert head in numbers
    assert "7-6 d-g 15" in numbers
