"""Comparisons: published values beside ours, with what agrees and why they differ. The first table of every page.

`NAME.toml` beside `NAME.md` has the comparisons of a page. Our numbers are not typed: `[comparison.cells]` names cells
of the tables that the page's script wrote, as [table, row, column], and the texts quote them. `{drop}` is a cell as it
stands there, `{drop.value}` its number, `{drop.bracket}` what stands in brackets after it, `{drop.at}` the layer after
"at", `{drop.head}` a head at its start, and `{drop.published}` what stands after a slash.
Keys above the first comparison hold for all of them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from reproduction_page import markdown_table, part_of

from bertology.citations import short_citation

FOLDER = Path(__file__).parent
Agreement = Literal["yes", "in part", "no", "undecided"]
TEXTS = ("finding", "published", "ours", "n", "why")
"""Fields that quote cells."""
COLUMNS = ("finding", "published", "here", "same direction", "why they differ")
SECTION = re.compile(r"^### (.+)\n", re.MULTILINE)
NUMBER = re.compile(r"([+-]?\d*\.?\d+)(?= |$)")


@dataclass(frozen=True)
class Quantity:
    """A cell of a table: a number with its interval, and the published one where the cell has both."""

    cell: str

    def __str__(self) -> str:
        return self.cell.split(" / ")[0]

    @property
    def value(self) -> str:
        """The number at the start, or all of a cell without one."""
        number = NUMBER.match(str(self))
        return number[1] if number else str(self)

    @property
    def bracket(self) -> str:
        """What stands in brackets: an interval, a range over seeds or a baseline."""
        return self._search(r"[\[(](.+?)[\])]")

    @property
    def at(self) -> str:
        """The layer after "at"."""
        return self._search(r" at (\d+)$")

    @property
    def head(self) -> str:
        """The head at the start."""
        return self._search(r"^(\d+-\d+)(?= |$)")

    @property
    def published(self) -> str:
        """What stands after the slash."""
        return self.cell.split(" / ")[1]

    def _search(self, pattern: str) -> str:
        found = re.search(pattern, str(self))
        if found is None:
            raise ValueError(f"{self.cell!r} has no {pattern}")
        return found[1]


@dataclass(frozen=True)
class Comparison:
    """One finding: the published value, ours, whether the direction is the same, and why they differ."""

    page: str
    topic: str
    id: str
    finding: str
    paper: str
    source: str
    published: str
    published_model: str
    ours: str
    model: str
    n: str
    agrees: Agreement
    why: str
    quantities: Mapping[str, Quantity]

    @property
    def published_cell(self) -> str:
        """The published value with model and source."""
        return f"{self.published}<br><small>{self.published_model}; {short_citation(self.paper)}, {self.source}</small>"

    @property
    def our_cell(self) -> str:
        """Our value with model and sample."""
        return f"{self.ours}<br><small>{self.model}; {self.n}</small>"


def page_names() -> tuple[str, ...]:
    """The names of all pages, in the order of the site."""
    site = (FOLDER.parents[1] / "mkdocs.yml").read_text("utf-8")
    return tuple(name for name in re.findall(r"reproductions/([\w-]+)\.md", site) if name != "index")


@cache
def comparisons_of(page: str) -> tuple[Comparison, ...]:
    """The comparisons of a page, their texts filled from its tables."""
    declared = tomllib.loads((FOLDER / f"{page}.toml").read_text("utf-8"))
    tables = declared.pop("tables")
    sections = read_tables(part_of((FOLDER / f"{page}.md").read_text("utf-8"), "numbers"))
    entries = declared.pop("comparison")
    return tuple(_comparison(page, declared | entry, tables, sections) for entry in entries)


def _comparison(
    page: str, entry: dict[str, Any], tables: Mapping[str, str], sections: Sequence[tuple[str, list[list[str]]]]
) -> Comparison:
    where = f"{page}#{entry['id']}"
    references: dict[str, list[str]] = entry.pop("cells", {})
    quantities = {
        name: Quantity(find_cell(sections, tables[table], row, column, where))
        for name, (table, row, column) in references.items()
    }
    for field in TEXTS:
        try:
            entry[field] = entry[field].format(**quantities)
        except (AttributeError, IndexError, KeyError, ValueError) as error:
            raise ValueError(f"{where}: {field} = {entry.get(field)!r} cannot be filled: {error!r}") from error
    if entry["agrees"] not in get_args(Agreement):
        raise ValueError(f"{where}: agrees is {entry['agrees']!r}, expected one of {', '.join(get_args(Agreement))}")
    return Comparison(page=page, quantities=quantities, **entry)


def read_tables(numbers: str) -> list[tuple[str, list[list[str]]]]:
    """The tables of a page's numbers, each with the heading it stands under; the first line has the columns."""
    found: list[tuple[str, list[list[str]]]] = []
    before, *sections = SECTION.split(numbers)
    for heading, text in [("", before), *zip(sections[::2], sections[1::2], strict=True)]:
        for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            lines = [line[2:-2].replace("**", "").split(" | ") for line in table.splitlines()]
            found.append((heading, [lines[0], *lines[2:]]))
    return found


def find_cell(
    tables: Sequence[tuple[str, list[list[str]]]], heading: str, row: str, column: str, where: str = ""
) -> str:
    """The cell of a row and the first column of this name; a row is named by its first cell, or by its first two."""
    found = {
        line[columns.index(column)].strip()
        for title, (columns, *lines) in tables
        for line in lines
        if title == heading and column in columns and row in (line[0].strip(), ", ".join(line[:2]))
    }
    if len(found) != 1:
        raise ValueError(f"{where}: {len(found)} cells in {heading!r}, row {row!r}, column {column!r}; expected one")
    return found.pop()


def comparison_table(page: str) -> str:
    """The first table of a page; each row has an anchor."""
    rows = [
        (f'<a id="{row.id}"></a>{row.finding}', row.published_cell, row.our_cell, row.agrees, row.why)
        for row in comparisons_of(page)
    ]
    return frame(COLUMNS, rows)


def frame(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in an element for which the site has styles: narrow screens show its cells one below the other.

    A number and its percent sign stay on one line.
    """
    table = markdown_table(columns, rows).replace(" %", "\N{NO-BREAK SPACE}%")
    return f'<div class="comparisons" markdown>\n\n{table}\n\n</div>'
