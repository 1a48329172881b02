"""Read TSV, CSV and JSON lines as rows of text by column name.

A column is identified by its header or by its number from 1. Tab-separated cells are taken literally, with their
quotation marks; comma-separated cells follow the usual quoting rules.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.json_fields import as_object, parse_json, to_cell
from bertology.corpus.read import first_lines, format_suffix
from bertology.corpus.text_files import ParseError, ParseErrorHandler, lines, parse_all
from bertology.errors import Refusal

JSON_SUFFIXES = {".jsonl", ".ndjson", ".json"}
TABLE_SUFFIXES = {"", ".txt", ".tsv", ".csv", *JSON_SUFFIXES}
TextRow = Mapping[str, str]
WORDS = ("words", "tokens", "word", "token", "forms", "form")
"""Names of columns of words."""
N_SAMPLE_ROWS = 40
MAX_LABEL_LENGTH = 80
"""A column with longer cells is no label: it is a text, a parse or a comment."""


@dataclass(frozen=True)
class TabularFile:
    """Column names (numbers if there is no header) and rows with their line numbers.

    Names are in lower case; `original_names` maps them to those of the header.
    """

    columns: tuple[str, ...]
    has_header: bool
    rows: Iterator[tuple[int, TextRow]]
    original_names: Mapping[str, str] = field(default_factory=dict[str, str])

    def require_columns(self, path: Path, names: Iterable[str], remedy: str) -> None:
        """Refuse a table that lacks one of the columns."""
        missing = [name for name in names if name not in self.columns]
        if self.columns and missing:
            raise Refusal(f"{path} lacks the column {missing[0]!r}", f"a header with {', '.join(names)}", remedy)


def open_table(path: Path, errors: ParseErrorHandler, *, header_names: Iterable[str]) -> TabularFile:
    """Open a table; its first row is a header if it contains one of `header_names`."""
    numbered_lines = lines(path, errors)
    if format_suffix(path) == ".csv":
        rows = _csv_rows(path, errors, numbered_lines)
    else:
        non_blank = ((number, line) for number, line in numbered_lines if line.strip())
        first = next(non_blank, (0, ""))
        non_blank = chain([first] if first[0] else [], non_blank)
        if format_suffix(path) in JSON_SUFFIXES or first[1].startswith("{"):
            return _json_table(path, errors, non_blank)
        rows = ((number, line.split("\t")) for number, line in non_blank)
    return _cell_table(path, errors, rows, {name.lower() for name in header_names})


def is_word_table(path: Path) -> bool:
    """Whether the header names a column of words and others, and the cells below it are single words."""
    header, *rows = [split_cells(line, path) for line in first_lines(path)] or [[]]
    names = [name.lower() for name in header]
    column = next((index for index, name in enumerate(names) if name in WORDS), None)
    if column is None or len(names) < 2 or len(set(names)) < len(names):
        return False
    return all(len(row) == len(names) and len(row[column].split()) == 1 for row in rows)


def split_cells(line: str, path: Path) -> list[str]:
    """Return the cells of one line of a table, without white space around them."""
    cells = next(csv.reader([line]), []) if format_suffix(path) == ".csv" else line.split("\t")
    return [cell.strip() for cell in cells]


def find_column(table: TabularFile, path: Path, role: str, option: str, candidates: Iterable[str]) -> str | None:
    """Return the column that the option names, else the first candidate that the table has, else None."""
    if option:
        name = option.lower()
        if name not in table.columns and not (name.isdecimal() and 1 <= int(name[:9]) <= len(table.columns)):
            raise Refusal(
                f"{path} has no column {option!r} for the {role}",
                f"one of: {', '.join(table.columns)} (or a number from 1 to {len(table.columns)})",
                f"Name the column with --format-option {role}=NAME",
            )
        return name
    return next((name for name in candidates if name in table.columns), None)


def required_cell(row: TextRow, name: str, description: str) -> str:
    """Return the cell of a column, which must not be blank."""
    value = row.get(name, "").strip()
    if not value:
        problem = f"The {description} (column {name!r}) is empty"
        raise ParseError(f"missing {description}", problem, f"a {description}", "Fill it in")
    return value


def find_label_columns(
    table: TabularFile, texts: Iterable[str | None], gold: str | None
) -> tuple[TabularFile, Mapping[str, str]]:
    """Return the table, and the columns of short cells beside the texts, with the names of the labels they contain.

    Only a header names labels. The gold label is among them, unless its column is called `label`.
    """
    if not table.has_header:
        return table, {}
    sample = list(islice(table.rows, N_SAMPLE_ROWS))
    columns = {
        name: table.original_names.get(name, name)
        for name in table.columns
        if name not in {*texts, "" if gold != "label" else gold}
        and all(len(row.get(name, "")) <= MAX_LABEL_LENGTH for _, row in sample)
    }
    return replace(table, rows=chain(sample, table.rows)), columns


def label_cells(row: TextRow, columns: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels of a row by name; empty cells are no labels."""
    return MappingProxyType({label: cell for name, label in columns.items() if (cell := row.get(name, "").strip())})


def _json_table(path: Path, errors: ParseErrorHandler, numbered_lines: Iterable[tuple[int, str]]) -> TabularFile:
    original_names: dict[str, str] = {}

    def parse_row(line: int, text: str) -> tuple[int, TextRow]:
        return _json_row(line, text, original_names)

    rows = parse_all(path, errors, numbered_lines, parse_row)
    first = next(rows, None)
    if first is None:
        return TabularFile((), True, iter(()))
    return TabularFile(tuple(first[1]), True, chain([first], rows), original_names)


def _json_row(line: int, text: str, original_names: dict[str, str]) -> tuple[int, TextRow]:
    values = as_object(parse_json(text, line), "The line")
    for name in values:
        original_names.setdefault(name.lower(), name)
    cells = ((name.lower(), to_cell(value)) for name, value in values.items())
    return line, {name: value for name, value in cells if value is not None}


def _cell_table(
    path: Path, errors: ParseErrorHandler, rows: Iterator[tuple[int, list[str]]], header_names: set[str]
) -> TabularFile:
    first = next(rows, None)
    if first is None:
        return TabularFile((), False, iter(()))
    header = [name.strip().lower() for name in first[1]]
    has_header = any(name in header_names for name in header)
    numbers = [str(index + 1) for index in range(len(header))]
    names = tuple(header if has_header else numbers)

    def parse_row(line: int, cells: list[str]) -> tuple[int, TextRow]:
        if len(cells) != len(names):
            problem, expected = f"The line has {len(cells)} columns", f"{len(names)} as in the first line"
            raise ParseError("wrong column count", problem, expected, "Check tabs and quotation marks in this line")
        return line, dict(zip(numbers, cells, strict=True)) | dict(zip(names, cells, strict=True))

    data_rows = rows if has_header else chain([first], rows)
    original_names = dict(zip(names, map(str.strip, first[1]), strict=True)) if has_header else {}
    return TabularFile(names, has_header, parse_all(path, errors, data_rows, parse_row), original_names)


def _csv_rows(
    path: Path, errors: ParseErrorHandler, numbered_lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file; a row over several lines has the number of its last line."""
    line_number = 0

    def feed() -> Iterator[str]:
        nonlocal line_number
        for number, line in numbered_lines:
            line_number = number
            yield line + "\n"

    rows = csv.reader(feed(), strict=True)
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            expected = "cells separated by commas, with doubled quotation marks inside quoted cells"
            ParseError("invalid CSV", f"The line is not CSV: {error}", expected, "Correct the quotation marks").report(
                path, errors, line_number
            )
            continue
        if any(text.strip() for text in cells):
            yield line_number, cells
