"""The index of reproductions says what the pages say now."""

from __future__ import annotations

from reproduced import FOLDER, script


def test_the_index_is_that_of_the_pages() -> None:
    assert (FOLDER / "index.md").read_text("utf-8") == script("index").index(), "run docs/reproductions/index.py"


def test_every_page_has_an_outcome() -> None:
    sections = script("index").index().split("\n## ")[1:]
    assert len(sections) == len(list(FOLDER.glob("*.md"))) - 1
    assert [section.split("]")[0] for section in sections if "\n- " not in section] == []
