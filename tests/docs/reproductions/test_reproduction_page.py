"""Numbers are written between the markers of a page, and prose is wrapped but tables are not."""

from __future__ import annotations

from reproduction_scripts import load_script

page = load_script("reproduction_page")


def test_new_numbers_replace_the_old_ones() -> None:
    begin, end = "<!-- numbers: begin -->", "<!-- numbers: end -->"
    text = f"text\n{begin}\nold 1.00\n{end}\nmore"
    assert page.part_of(text, "numbers") == "old 1.00"
    assert page.replace_part(text, "numbers", "new 2.00") == f"text\n{begin}\n\nnew 2.00\n\n{end}\nmore"


def test_long_prose_is_wrapped_and_tables_are_not() -> None:
    row = f"| {'cell ' * 40}|"
    bullet = f"- {'word ' * 40}".strip()
    lines = page.join_parts([row, bullet]).split("\n")
    assert lines[0] == row
    assert all(len(line) <= page.LINE_LENGTH for line in lines[1:])
    assert lines[2].startswith("- word") and lines[3].startswith("  word")
    assert " ".join(" ".join(lines[2:]).split()) == bullet
