"""The page has the numbers its script computes, and cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page
from shared_data import shared

SCRIPT = FOLDER / "attention_bert_base.py"
PAGE = SCRIPT.with_name("attention-bert-base.md")
NUMBER = re.compile(r"-?\d+\.\d+")
LAST_DIGIT = 1.01


def assert_same_numbers(actual: str, expected: str) -> None:
    """Equal except for the last digit of a number, which may be rounded differently on another machine."""
    assert NUMBER.sub("#", actual) == NUMBER.sub("#", expected)
    for number, expected_number in zip(NUMBER.findall(actual), NUMBER.findall(expected), strict=True):
        digits = len(expected_number.partition(".")[2])
        assert float(number) == pytest.approx(float(expected_number), abs=LAST_DIGIT * 10**-digits)


def test_the_page_has_the_numbers_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shared("data/bert-base-attention")
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(data), "--write", "--page", str(copy)])
    load_script("attention_bert_base").main()
    printed = capsys.readouterr().out.strip()
    assert printed in copy.read_text("utf-8")
    assert_same_numbers(printed, split_page(PAGE)[1])


def test_the_text_has_no_other_numbers() -> None:
    text, numbers = split_page(PAGE)
    # A threshold of Clark et al., and the F1 of Kovaleva et al.'s network on its own labels.
    allowed = {float(number) for number in NUMBER.findall(numbers)} | {0.6, 0.86}
    prose = re.sub(r"MIT|Apache-2\.0", "", text)
    assert {float(number) for number in NUMBER.findall(prose)} <= allowed
