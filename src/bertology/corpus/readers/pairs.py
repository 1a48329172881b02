"""Labelled sentence pairs: TSV, CSV or JSON lines, with GLUE's headers or as label, first, second.

Headers of MNLI, SNLI, QQP, MRPC, QNLI, RTE, STS-B, SICK and similar data are recognised; the options `label`, `first`
and `second` name other columns, by name or number from 1. Other columns of short cells are labels under their own
names. Pairs with the label `-` (SNLI: no majority) are counted and skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, format_suffix, reader
from bertology.corpus.readers import senteval
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.tabular_files import (
    N_SAMPLE_ROWS,
    TABLE_SUFFIXES,
    TabularFile,
    TextRow,
    find_column,
    find_label_columns,
    is_word_table,
    label_cells,
    open_table,
    required_cell,
)
from bertology.corpus.text_files import ParseErrorHandler, parse_all
from bertology.errors import Refusal

LABELS = (
    "gold_label", "label", "is_duplicate", "quality", "score", "entailment_label", "entailment_judgment", "similarity",
)  # fmt: skip
PAIRS = (
    ("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence"),
    ("#1 string", "#2 string"), ("sentence_a", "sentence_b"), ("text_a", "text_b"), ("text1", "text2"),
    ("first", "second"),
)  # fmt: skip
PAIR_COLUMNS = tuple(name for pair in PAIRS for name in pair)
EXAMPLE = """\
label	premise	hypothesis
entailment	A dog sleeps.	An animal rests.
contradiction	A dog sleeps.	A dog runs."""


def matches(path: Path) -> bool:
    """Whether the header names a pair, or the first of three columns contains labels that repeat."""
    is_table = bool(first_lines(path)) and format_suffix(path) in TABLE_SUFFIXES
    if not is_table or senteval.matches(path) or is_word_table(path):
        return False
    table = open_table(path, ParseErrorHandler(skip_malformed=True), header_names=PAIR_COLUMNS)
    if table.has_header:
        return _find_pair_columns(table) is not None
    labels = [row["1"] for _, row in islice(table.rows, N_SAMPLE_ROWS)]
    return len(table.columns) == 3 and 0 < len(set(labels)) < len(labels) and not any(" " in label for label in labels)


@reader(
    "pairs",
    description="labelled sentence pairs: TSV, CSV, JSON lines; GLUE's headers, or label, first, second",
    example=EXAMPLE,
    suffixes=(".tsv", ".csv", ".jsonl"),
    matches=matches,
)
def read_pairs(
    path: Path,
    errors: ParseErrorHandler,
    *,
    label: str = "",
    first: str = "",
    second: str = "",
    words: WordSplitting = "text",
) -> Iterator[Example]:
    """Yield one example per row, with the line number as id; the label is None if there is no label column."""
    table = open_table(path, errors, header_names=(*PAIR_COLUMNS, *(name for name in (label, first, second) if name)))
    if not table.columns:
        return
    names = _columns(table, path, label, first, second)
    label_name = names[0]
    table, labels = find_label_columns(table, names[1:], label_name)
    for line, row in table.rows:
        if label_name and row.get(label_name, "").strip() == "-":
            errors.count(path, line, "examples without gold label skipped")
        else:
            yield from parse_all(path, errors, [(line, row)], partial(_to_example, names, labels, words))


def _columns(table: TabularFile, path: Path, label: str, first: str, second: str) -> tuple[str | None, str, str]:
    """Return the names of the columns of label (or None), first and second text."""
    default = (None, None) if table.has_header or len(table.columns) != 3 else ("2", "3")
    pair = _find_pair_columns(table) or default
    first_name = find_column(table, path, "first", first, ()) or pair[0]
    second_name = find_column(table, path, "second", second, ()) or pair[1]
    label_name = find_column(table, path, "label", label, LABELS if table.has_header else ("1",))
    if not first_name or not second_name:
        raise Refusal(
            f"The header of {path} does not determine the columns of the first and second text",
            f"a header with names such as sentence1 and sentence2; the columns are: {', '.join(table.columns)}",
            "Name them with --format-option: first=COLUMN, second=COLUMN and label=COLUMN (names, or numbers from 1)",
        )
    return (None if label_name in {first_name, second_name} else label_name), first_name, second_name


def _find_pair_columns(table: TabularFile) -> tuple[str, str] | None:
    return next((pair for pair in PAIRS if all(name in table.columns for name in pair)), None)


def _to_example(
    names: tuple[str | None, str, str],
    labels: Mapping[str, str],
    word_splitting: WordSplitting,
    line: int,
    row: TextRow,
) -> Example:
    label_name, first_name, second_name = names
    label = required_cell(row, label_name, "label") if label_name else None
    texts = (required_cell(row, first_name, "first text"), required_cell(row, second_name, "second text"))
    segments = tuple(split_words(text, word_splitting) for text in texts)
    return Example(segments, "pair", label, id=str(line), labels=label_cells(row, labels))
