"""The script fine-tunes and freezes any model, and the page cites no number that is not in its tables."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from reproduction_scripts import FOLDER, load_script, split_page

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
    module = load_script("fine_tuning")
    monkeypatch.setattr(module, "PAGE", copy)
    finetuned, frozen = tmp_path / "finetuned.json", tmp_path / "frozen.json"
    for arguments in (
        ["finetune", "tiny", "sentence", *[str(reviews)] * 2, "--out-of-domain", "english", "--sample-size", "20"],
        ["freeze", "tiny", "sentence", str(reviews), "--sample-size", "24", "--n-seeds", "1"],
    ):
        file = finetuned if arguments[0] == "finetune" else frozen
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments, "--epochs", "1", "-o", str(file)])
        module.main()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "page", str(finetuned), str(frozen)])
    module.main()
    text, numbers = split_page(copy)
    assert text == split_page(PAGE)[0]
    for title in (
        "Task scores",
        "tiny: similarity (RSA)",
        "tiny: similarity of attention patterns",
        "tiny, reviews: freezing",
    ):
        assert f"### {title}" in numbers
    # The embeddings and two layers.
    similarity = numbers.split("similarity (RSA)")[1].split("###")[0]
    assert len([line for line in similarity.splitlines() if line.startswith("| ")]) == 2 + 3


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    cited = set(NUMBER.findall(re.sub(r"\(http\S+\)", "", text)))
    allowed = set(NUMBER.findall(numbers))
    assert cited <= allowed
