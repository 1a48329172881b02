"""The script runs on any models and texts, and the page's text has no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import HeadName, save, with_head
from bertology.encoder.variant import Variant
from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "attacks.py"
PAGE = SCRIPT.with_name("attacks.md")
NUMBER = re.compile(r"\d+\.\d+")
CLASSES = ("contradiction", "entailment", "neutral")
REVIEWS = [
    f"{number % 2} the {word} film was {word} and long" for number, word in enumerate(("red", "blue", "old", "big") * 3)
]
PAIRS = [
    f"{label}\tthe {word} dog ran to the house\ta {word} dog was there" for word in ("red", "old") for label in CLASSES
]


def model(folder: Path, head: HeadName, labels: tuple[str, ...]) -> str:
    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    folder.mkdir()
    save(with_head(base, head, labels, variant=Variant(), seed=0), folder)
    return str(folder)


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("attacks")
    monkeypatch.setattr(module, "PAGE", copy)
    reviews, pairs = tmp_path / "mr", tmp_path / "pairs.tsv"
    reviews.write_text("\n".join(REVIEWS), "utf-8")
    pairs.write_text("\n".join(PAIRS), "utf-8")
    words = [model(tmp_path / "reader", "choice", ()), str(reviews), str(pairs)]
    words += ["--sentiment", model(tmp_path / "reviews", "label", ("negative", "positive")), "--base", "tiny"]
    words += ["--pairs", model(tmp_path / "pairs", "label", CLASSES), "--texts", "6", "--questions", "3"]
    words += ["--substituted", "2", "--blind", "8", "--epochs", "1", "--write"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
    module.main()
    text, numbers = parts(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == parts(PAGE)[0]
    headings = re.findall(r"### (\w+)", numbers)
    assert headings == ["Attacked"] * 4 + ["Substituted"] * 2 + ["Trained", "Replayed"]
    for row in ("AddSent2Pas-Shuffle", "no first", "PQ-Remove", "longest option"):
        assert f"| {row} |" in numbers


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert numbers
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))
