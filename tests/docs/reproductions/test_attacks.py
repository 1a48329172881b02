"""The script runs on any models and texts, and the page cites no number that is not in its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import TaskHeadName, add_task_head, save_pretrained
from reproduction_scripts import FOLDER, load_script, split_page

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


def save_model(folder: Path, task_head: TaskHeadName, labels: tuple[str, ...]) -> str:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    folder.mkdir()
    save_pretrained(add_task_head(base, task_head, labels, variant=LayerVariant(), seed=0), folder)
    return str(folder)


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("attacks")
    monkeypatch.setattr(module, "PAGE", copy)
    reviews, pairs = tmp_path / "mr", tmp_path / "pairs.tsv"
    reviews.write_text("\n".join(REVIEWS), "utf-8")
    pairs.write_text("\n".join(PAIRS), "utf-8")
    arguments = [save_model(tmp_path / "choice", "choice", ()), str(reviews), str(pairs)]
    arguments += [
        "--sentiment-model",
        save_model(tmp_path / "reviews", "label", ("negative", "positive")),
        "--base-model",
        "tiny",
    ]
    arguments += ["--pair-model", save_model(tmp_path / "pairs", "label", CLASSES), "--texts", "6", "--questions", "3"]
    arguments += ["--substituted", "2", "--training-questions", "8", "--epochs", "1", "--write"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    module.main()
    text, numbers = split_page(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == split_page(PAGE)[0]
    titles = re.findall(r"### (\w+)", numbers)
    assert titles == ["Attacks"] * 4 + ["Word"] * 2 + ["Unanswerable", "Divergence"]
    for row in ("AddSent2Pas-Shuffle", "second text only", "PQ-Remove", "longest option"):
        assert f"| {row} |" in numbers


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert numbers
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))
