"""Rows of TSV, CSV and JSON lines under the names of their columns.

A column is named by the header, or by its number from 1. Tab-separated cells are taken as they stand, quotation marks
included; comma-separated ones follow the usual rules of quoting.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bertology.corpus.faults import Fault, parsed
from bertology.corpus.json_values import as_cell, keyed, parse_json
from bertology.corpus.sniff import suffix
from bertology.corpus.source import Problems, lines
from bertology.errors import Refusal

JSON_SUFFIXES = {".jsonl", ".ndjson", ".json"}
Row = Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """The names of the columns (their numbers where there is no header) and the rows, with their line numbers."""

    names: tuple[str, ...]
    headed: bool
    rows: Iterator[tuple[int, Row]]


def open_table(path: Path, problems: Problems, *, known: Iterable[str]) -> Table:
    """The table in a file; its first row is a header where it holds a name that is `known`."""
    numbered = lines(path, problems)
    if suffix(path) == ".csv":
        cells = _comma_cells(path, problems, numbered)
    else:
        filled = ((number, line) for number, line in numbered if line.strip())
        first = next(filled, (0, ""))
        filled = chain([first] if first[0] else [], filled)
        if suffix(path) in JSON_SUFFIXES or first[1].startswith("{"):
            return _json_table(path, problems, filled)
        cells = ((number, line.split("\t")) for number, line in filled)
    return _cell_table(path, problems, cells, {name.lower() for name in known})


def choose(table: Table, path: Path, what: str, option: str, candidates: Iterable[str]) -> str | None:
    """The column that `option` names, else the first of the candidates that the table has, else None."""
    if option:
        name = option.lower()
        if name not in table.names and not (name.isdecimal() and 1 <= int(name[:9]) <= len(table.names)):
            raise Refusal(
                f"{path} has no column {option!r} for the {what}",
                f"one of: {', '.join(table.names)} (or a number from 1 to {len(table.names)})",
                f"Name the column with the option {what}=NAME",
            )
        return name
    return next((name for name in candidates if name in table.names), None)


def cell(row: Row, name: str, what: str) -> str:
    """The cell of a column, which may not be blank."""
    value = row.get(name, "").strip()
    if not value:
        raise Fault(f"missing {what}", f"The {what} (column {name!r}) is empty", f"a {what}", "Fill it in")
    return value


def _json_table(path: Path, problems: Problems, numbered: Iterable[tuple[int, str]]) -> Table:
    rows = parsed(path, problems, numbered, _json_row)
    first = next(rows, None)
    if first is None:
        return Table((), True, iter(()))
    return Table(tuple(first[1]), True, chain([first], rows))


def _json_row(line: int, text: str) -> tuple[int, Row]:
    values = keyed(parse_json(text, line), "The line")
    cells = ((name.lower(), as_cell(value)) for name, value in values.items())
    return line, {name: value for name, value in cells if value is not None}


def _cell_table(path: Path, problems: Problems, rows: Iterator[tuple[int, list[str]]], known: set[str]) -> Table:
    first = next(rows, None)
    if first is None:
        return Table((), False, iter(()))
    header = [name.strip().lower() for name in first[1]]
    headed = any(name in known for name in header)
    numbers = [str(index + 1) for index in range(len(header))]
    names = tuple(header if headed else numbers)

    def row(line: int, cells: list[str]) -> tuple[int, Row]:
        if len(cells) != len(names):
            found = f"The line has {len(cells)} columns"
            remedy = "Check tabs and quotation marks in this line"
            raise Fault("wrong column count", found, f"{len(names)} as in the first line", remedy)
        return line, dict(zip(numbers, cells, strict=True)) | dict(zip(names, cells, strict=True))

    return Table(names, headed, parsed(path, problems, rows if headed else chain([first], rows), row))


def _comma_cells(
    path: Path, problems: Problems, numbered: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file; a row that runs over several lines has the number of its last."""
    current = 0

    def feed() -> Iterator[str]:
        nonlocal current
        for number, line in numbered:
            current = number
            yield line + "\n"

    table = csv.reader(feed(), strict=True)
    while True:
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            found = f"The line is no CSV: {error}"
            expected = "cells between commas, quotation marks doubled inside quoted cells"
            Fault("invalid CSV", found, expected, "Correct the quotation marks").report(path, problems, current)
            continue
        if any(text.strip() for text in cells):
            yield current, cells
