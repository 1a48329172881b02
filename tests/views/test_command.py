"""`bertology view` writes a page and prints its name; mistakes are told in one paragraph."""

from __future__ import annotations

from pathlib import Path

from command import bertology


def test_a_page_is_written(tmp_path: Path) -> None:
    file = tmp_path / "look.html"
    words = ("The cat sat.", "It slept.", "--model", "tiny", "--quantity", "norm", "--view", "matrix")
    ended = bertology("view", *words, "-o", str(file))
    assert (ended.status, ended.out.strip()) == (0, str(file))
    text = file.read_text("utf-8")
    assert text.startswith("<!doctype html>") and '"state":"view=matrix"' in text and '"name":"norm"' in text


def test_mistakes_are_told(tmp_path: Path) -> None:
    ended = bertology("view", "The cat sat.", "--model", "tiny", "-o", str(tmp_path / "no" / "where.html"))
    assert ended.status == 2 and "cannot be written" in ended.err
    ended = bertology("view", "The cat sat.", "--model", "tiny", "--quantity", "norms")
    assert ended.status == 2 and "Did you mean 'norm'" in ended.err
    ended = bertology("view", "The cat sat.", "--model", "static:tiny", "-o", str(tmp_path / "static.html"))
    assert ended.status == 2 and "static vectors" in ended.err
