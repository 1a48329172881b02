"""Labelled sentences: TSV, CSV or JSON lines with a label and a text, or lines of a label, a space and a text.

Columns are identified by their header (label, gold_label, class ...; text, sentence, review ...), or by the options
`label` and `text`, by name or number from 1. Of two columns without header the label is the one without spaces. All
columns of short cells beside the text are labels under their own names (`--label NAME`); without a column for the label
of the examples they are the only ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, format_suffix, reader
from bertology.corpus.readers import gap, pairs
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.tabular_files import (
    N_SAMPLE_ROWS,
    TABLE_SUFFIXES,
    TabularFile,
    TextRow,
    find_column,
    find_label_columns,
    label_cells,
    open_table,
    required_cell,
)
from bertology.corpus.text_files import ParseError, ParseErrorHandler, non_blank_lines, parse_all
from bertology.errors import Refusal

LABELS = ("gold_label", "label", "labels", "class", "category", "sentiment", "polarity", "target")
TEXTS = ("text", "sentence", "review", "content", "tweet", "comment", "body", "headline")
SENTIMENTS = {"pos", "neg", "positive", "negative", "neutral"}
EXAMPLE = """\
label	text
positive	A film to see twice.
negative	I left before the end."""


def matches(path: Path) -> bool:
    """Whether the header names a text beside other columns, or one of two columns contains labels."""
    sample_lines = first_lines(path)
    if not sample_lines or format_suffix(path) not in TABLE_SUFFIXES or gap.matches(path) or pairs.matches(path):
        return False
    if _may_be_space_separated(path):
        return _is_space_separated(sample_lines)
    table = open_table(path, ParseErrorHandler(skip_malformed=True), header_names=(*LABELS, *TEXTS))
    if table.has_header:
        return len(table.columns) > 1 and any(name in table.columns for name in TEXTS)
    rows = [row for _, row in islice(table.rows, N_SAMPLE_ROWS)]
    return len(table.columns) == 2 and _label_column(rows) is not None


@reader(
    "labelled",
    description="labelled sentences: TSV, CSV, JSON lines, or lines of label and text",
    example=EXAMPLE,
    suffixes=(".tsv", ".csv", ".jsonl"),
    matches=matches,
)
def read_labelled(
    path: Path, errors: ParseErrorHandler, *, label: str = "", text: str = "", words: WordSplitting = "text"
) -> Iterator[Example]:
    """Yield one example per row, with the line number as id."""
    if not (label or text) and _may_be_space_separated(path):
        yield from parse_all(path, errors, non_blank_lines(path, errors), partial(_space_separated_example, words))
        return
    table = open_table(path, errors, header_names=(*LABELS, *TEXTS, label or "label", text or "text"))
    if not table.columns:
        return
    table, label_name, text_name = _columns(table, path, label, text)
    table, labels = find_label_columns(table, (text_name,), label_name)
    yield from parse_all(path, errors, table.rows, partial(_to_example, label_name, text_name, labels, words))


def _may_be_space_separated(path: Path) -> bool:
    """Whether the file is neither a table nor JSON."""
    first_line = "".join(first_lines(path)[:1])
    is_text = format_suffix(path) in {"", ".txt"} and bool(first_line)
    return is_text and "\t" not in first_line and not first_line.startswith("{")


def _columns(table: TabularFile, path: Path, label: str, text: str) -> tuple[TabularFile, str | None, str]:
    """Return the table and the names of its label column (None if the header names others) and text column."""
    label_name = find_column(table, path, "label", label, LABELS)
    text_name = find_column(table, path, "text", text, TEXTS)
    if not table.has_header and len(table.columns) == 2 and not (label_name and text_name):
        sample = list(islice(table.rows, N_SAMPLE_ROWS))
        table = replace(table, rows=chain(sample, table.rows))
        other = {"1": "2", "2": "1"}
        label_name = label_name or other.get(text_name or "") or _label_column([row for _, row in sample])
        text_name = text_name or other.get(label_name or "")
    if not text_name or not (label_name or (table.has_header and len(table.columns) > 1)):
        raise Refusal(
            f"The header of {path} does not determine the columns of label and text",
            f"a header with names such as label and text; the columns are: {', '.join(table.columns)}",
            "Add --format-option label=COLUMN and --format-option text=COLUMN (names, or numbers from 1)",
        )
    return table, label_name, text_name


def _label_column(rows: list[TextRow]) -> str | None:
    """Return the one of two columns whose cells have no spaces, if cells of the other have."""
    has_spaces = {name: any(" " in row.get(name, "").strip() for row in rows) for name in ("1", "2")}
    return {(False, True): "1", (True, False): "2"}.get((has_spaces["1"], has_spaces["2"]))


def _to_example(
    label_name: str | None,
    text_name: str,
    labels: Mapping[str, str],
    word_splitting: WordSplitting,
    line: int,
    row: TextRow,
) -> Example:
    label = required_cell(row, label_name, "label") if label_name else None
    example = _labelled_example(label, required_cell(row, text_name, "text"), word_splitting, line)
    return replace(example, labels=label_cells(row, labels))


def _space_separated_example(word_splitting: WordSplitting, line: int, line_text: str) -> Example:
    label, _, text = line_text.strip().partition(" ")
    if not text.strip():
        problem = f"No text follows the label {label!r}"
        raise ParseError("missing text", problem, "a label, a space, a text", "Fill it in")
    return _labelled_example(label, text.strip(), word_splitting, line)


def _labelled_example(label: str | None, text: str, word_splitting: WordSplitting, line: int) -> Example:
    sentence = replace(split_words(text, word_splitting, id=str(line)), label=label)
    return Example((sentence,), label=label, id=sentence.id)


def _is_space_separated(sample_lines: tuple[str, ...]) -> bool:
    """Whether every line begins with a number or the name of a sentiment, and some of these repeat."""
    labels = [line.partition(" ")[0].lower() for line in sample_lines]
    return len(set(labels)) < len(labels) and all(label.isdecimal() or label in SENTIMENTS for label in labels)
