"""The page says what its script finds: the tables number by number, and no number in the text that is not in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script
from shared_data import shared

SCRIPT = FOLDER / "attention_bert_base.py"
PAGE = SCRIPT.with_name("attention-bert-base.md")
NUMBER = re.compile(r"-?\d+\.\d+")
LAST_DIGIT = 1.01


def assert_same_numbers(found: str, expected: str) -> None:
    """Equal but for the last digit of a number, which may be rounded otherwise on another machine."""
    assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True):
        digits = len(other.partition(".")[2])
        assert float(one) == pytest.approx(float(other), abs=LAST_DIGIT * 10**-digits), (one, other)


def test_the_page_has_the_numbers_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shared("data/bert-base-attention")
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(data), "--write", "--page", str(copy)])
    script("attention_bert_base").main()
    printed = capsys.readouterr().out.strip()
    assert printed in copy.read_text("utf-8")
    assert_same_numbers(printed, parts(PAGE)[1])


def test_the_text_has_no_other_numbers() -> None:
    text, numbers = parts(PAGE)
    known = {float(number) for number in NUMBER.findall(numbers)} | {0.6, 0.86}
    """A threshold of Clark's, and how well Kovaleva's network did on its own labels."""
    prose = re.sub(r"MIT|Apache-2\.0", "", text)
    assert {float(number) for number in NUMBER.findall(prose)} <= known


def test_other_numbers_take_the_place_of_the_old_ones() -> None:
    module = script("reproduction_page")
    page = f"text\n{module.BEGIN}\nold 1.00\n{module.END}\nmore"
    assert module.written(page, "new 2.00") == f"text\n{module.BEGIN}\n\nnew 2.00\n\n{module.END}\nmore"
