"""The page says what its script finds: the tables number by number, and no number in the text that is not in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script
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
    script("heads_bert_base").main()
    printed = capsys.readouterr().out.strip()
    assert printed in copy.read_text("utf-8")
    found, expected = (NUMBER.sub("#", text) for text in (printed, parts(PAGE)[1]))
    assert found == expected
    for one, other in zip(NUMBER.findall(printed), NUMBER.findall(parts(PAGE)[1]), strict=True):
        assert float(one) == pytest.approx(float(other), abs=LAST_DIGIT / 10), (one, other)


def test_the_text_has_no_other_numbers() -> None:
    text, numbers = parts(PAGE)
    known = {float(number) for number in NUMBER.findall(numbers)} | {4.2}  # a section of the paper
    assert {float(number) for number in NUMBER.findall(text)} <= known


def test_the_heads_known_beforehand_are_in_the_table() -> None:
    numbers = parts(PAGE)[1]
    for head in ("det | 151 | 8-11 d-h", "amod | 133 | 4-10 d-h", "aux | 22 | 4-10 d-h"):
        assert head in numbers
    assert "7-6 d-h 15" in numbers
