"""Shared by the scripts of these pages: estimates and tables as Markdown, and writing them into a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from bertology.estimates.estimate import Estimate

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
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


def replace_numbers(page: str, numbers: str) -> str:
    """The text of a page with new numbers between its markers."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{numbers}\n\n{END}", page, flags=re.DOTALL)


def write_numbers(page: Path, numbers: str) -> None:
    """Replace the numbers of a page."""
    page.write_text(replace_numbers(page.read_text("utf-8"), numbers), "utf-8")
