"""The script runs on any model and data of these formats, and the page cites only numbers of its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import planted_features as planted
from reproduction_scripts import FOLDER, load_script, split_page

SCRIPT = FOLDER / "context.py"
PAGE = SCRIPT.with_name("context.md")
NUMBER = re.compile(r"\d+\.\d+")


def write_data(folder: Path) -> tuple[Path, Path]:
    """Planted entities and pairs in the formats of the real files, and vectors of their words."""
    (folder / "ner").mkdir()
    (folder / "nli").mkdir()
    for name, seed in (("emerging.dev.conll", 0), ("wnut17train.conll", 1)):
        lines: list[str] = []
        for sentence in planted.entities(ambiguous=True, count=30, seed=seed).sentences:
            labels = {span.start: f"B-{span.label}" for span in sentence.entities or ()}
            lines += [f"{word}\t{labels.get(index, 'O')}" for index, word in enumerate(sentence.words)] + [""]
        (folder / "ner" / name).write_text("\n".join(lines) + "\n", "utf-8")
    rows = (
        "\t".join((example.label or "", *(segment.text for segment in example.segments)))
        for example in planted.pairs(count=40)
    )
    (folder / "nli" / "snli").write_text("\n".join(rows) + "\n", "utf-8")
    vectors = folder / "vectors.txt"
    vectors.write_text("".join(f"{word} {index} {index % 2}\n" for index, word in enumerate(planted.WORDS)), "utf-8")
    return folder, vectors


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, vectors = write_data(tmp_path)
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = load_script("context")
    monkeypatch.setattr(module, "PAGE", copy)
    monkeypatch.setitem(module.TASKS, "wnut", module.replace(module.TASKS["wnut"], classifier=""))
    arguments = ["tiny", str(vectors), str(folder), "--task", "wnut", "--task", "snli"]
    arguments += ["--n-train-sizes", "1", "--n-seeds", "1", "--second-model", "tiny", "--write"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    module.main()
    text, numbers = split_page(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == split_page(PAGE)[0]
    for text_part in (
        "### Named entities in WNUT-17: span F1",
        "### Entailment in SNLI: accuracy",
        "GloVe 50-d",
        "data ratio",
        "| tiny |",
    ):
        assert text_part in numbers
    assert "test 30 examples" in numbers


def test_the_text_cites_only_numbers_of_the_tables() -> None:
    text, numbers = split_page(PAGE)
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))
