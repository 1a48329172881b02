"""The index of reproductions has the current findings of the pages."""

from __future__ import annotations

from reproduction_scripts import FOLDER, load_script


def test_the_index_matches_the_pages() -> None:
    assert (FOLDER / "index.md").read_text("utf-8") == load_script("index").index(), "run docs/reproductions/index.py"


def test_every_page_has_a_finding() -> None:
    sections = load_script("index").index().split("\n## ")[1:]
    assert len(sections) == len(list(FOLDER.glob("*.md"))) - 1
    assert [section.split("]")[0] for section in sections if "\n- " not in section] == []


def test_a_finding_is_the_first_sentence_of_a_bold_paragraph() -> None:
    text = "Prose.\n\n**It holds.** As in Clark et al. (2019),\nhalf of it is 0.5. More.\n\n**Not a sentence**\n\nEnd."
    assert load_script("index").findings(text) == ["**It holds.** As in Clark et al. (2019), half of it is 0.5."]
