"""The script learns, freezes and writes its tables for any model, and the page tells no number that is not in them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "fine_tuning.py"
PAGE = SCRIPT.with_name("fine-tuning.md")
NUMBER = re.compile(r"\d+\.\d+")


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.jsonl"
    lines = [
        {"label": ("bad", "good")[n % 2], "text": f"the {('poor', 'rich')[n % 2]} king number {n}"} for n in range(48)
    ]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return file


def test_runs_become_tables(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("fine_tuning")
    monkeypatch.setattr(module, "PAGE", copy)
    learnt, frozen = tmp_path / "learnt.json", tmp_path / "frozen.json"
    for words in (
        ["learn", "tiny", "sentence", str(reviews), str(reviews), "--outside", "english", "--texts", "20"],
        ["freeze", "tiny", "sentence", str(reviews), "--items", "24", "--seeds", "1"],
    ):
        file = learnt if words[0] == "learn" else frozen
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words, "--epochs", "1", "-o", str(file)])
        module.main()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "page", str(learnt), str(frozen)])
    module.main()
    text, numbers = parts(copy)
    assert text == parts(PAGE)[0]
    for heading in (
        "What was learnt",
        "tiny: similarity (RSA)",
        "tiny: change of the attention",
        "tiny, reviews: freezing",
    ):
        assert f"### {heading}" in numbers
    # Frozen before the first block or after the last: two layers give three rows.
    similarity = numbers.split("similarity (RSA)")[1].split("###")[0]
    assert len([line for line in similarity.splitlines() if line.startswith("| ")]) == 2 + 3


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    told = set(NUMBER.findall(re.sub(r"\(http\S+\)", "", text)))
    known = set(NUMBER.findall(numbers))
    assert told <= known, told - known
