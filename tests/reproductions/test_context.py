"""The script runs on any model and data of these forms, and the page tells only numbers of its tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import planted_features as planted
from reproduced import FOLDER, parts, script

SCRIPT = FOLDER / "context.py"
PAGE = SCRIPT.with_name("context.md")
NUMBER = re.compile(r"\d+\.\d+")


def data(folder: Path) -> tuple[Path, Path]:
    """A few planted names and pairs in the forms of the real files, and vectors of their words."""
    (folder / "ner").mkdir()
    (folder / "nli").mkdir()
    for name, seed in (("emerging.dev.conll", 0), ("wnut17train.conll", 1)):
        lines: list[str] = []
        for sentence in planted.names(ambiguous=True, count=30, seed=seed).sentences:
            names = {span.start: f"B-{span.label}" for span in sentence.entities or ()}
            lines += [f"{word}\t{names.get(place, 'O')}" for place, word in enumerate(sentence.words)] + [""]
        (folder / "ner" / name).write_text("\n".join(lines) + "\n", "utf-8")
    rows = ("\t".join((item.label or "", *(part.text for part in item.parts))) for item in planted.pairs(count=40))
    (folder / "nli" / "snli").write_text("\n".join(rows) + "\n", "utf-8")
    vectors = folder / "vectors.txt"
    vectors.write_text("".join(f"{word} {place} {place % 2}\n" for place, word in enumerate(planted.WORDS)), "utf-8")
    return folder, vectors


def test_the_script_writes_its_tables_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, vectors = data(tmp_path)
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    module = script("context")
    monkeypatch.setattr(module, "PAGE", copy)
    monkeypatch.setitem(module.LESSONS, "wnut", module.replace(module.LESSONS["wnut"], learners=""))
    words = ["tiny", str(vectors), str(folder), "--task", "wnut", "--task", "snli", "--sizes", "1", "--seeds", "1"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words, "--second", "tiny", "--write"])
    module.main()
    text, numbers = parts(copy)
    assert numbers == capsys.readouterr().out.strip()
    assert text == parts(PAGE)[0]
    for heading in (
        "### Names in WNUT-17: span F1",
        "### Entailment in SNLI: accuracy",
        "GloVe 50-d",
        "data factor",
        "| tiny |",
    ):
        assert heading in numbers
    assert "30 to be judged by" in numbers


def test_the_text_tells_only_numbers_of_the_tables() -> None:
    text, numbers = parts(PAGE)
    assert set(NUMBER.findall(text)) <= set(NUMBER.findall(numbers))
