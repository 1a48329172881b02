"""Shared by the scripts of these pages: estimates and tables as Markdown, and writing them into a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from bertology.estimates.estimate import Estimate

LINE_LENGTH = 120


def percent(estimate: Estimate) -> str:
    """A proportion with its interval, in percent."""
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def percent_or_empty(estimate: Estimate) -> str:
    """A proportion with its interval, in percent; empty without a value."""
    return percent(estimate) if estimate.n and estimate.value == estimate.value else ""


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with one line per row."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def capitalise(text: str) -> str:
    """The text with a capital first letter; other letters stay."""
    return f"{text[:1].upper()}{text[1:]}"


def wrap_prose(markdown: str) -> str:
    """The Markdown with long lines wrapped, except those of tables and headings."""
    return "\n".join(
        line if len(line) <= LINE_LENGTH or line.startswith(("|", "#")) else _wrap(line)
        for line in markdown.split("\n")
    )


def _wrap(line: str) -> str:
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, LINE_LENGTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def join_parts(parts: Iterable[str]) -> str:
    """The parts of a page with blank lines between them, wrapped."""
    return wrap_prose("\n\n".join(parts))


def part_of(page: str, name: str) -> str:
    """What stands between the markers of a part of a page, such as its numbers."""
    begin, end = _markers(name)
    return page.split(begin)[1].split(end)[0].strip()


def replace_part(page: str, name: str, content: str) -> str:
    """The text of a page with new content between the markers of a part."""
    begin, end = _markers(name)
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n\n{content}\n\n{end}", page, flags=re.DOTALL)


def write_numbers(page: Path, numbers: str) -> None:
    """Replace the numbers of a page."""
    page.write_text(replace_part(page.read_text("utf-8"), "numbers", numbers), "utf-8")


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
