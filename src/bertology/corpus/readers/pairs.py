"""Sentence pairs with a label: TSV, CSV or JSON lines, with GLUE's headers or as label, first, second.

Known headers are those of MNLI, SNLI, QQP, MRPC, QNLI, RTE, STS-B, SICK and the like; the options `label`, `first` and
`second` name other columns (by name, or number from 1). The label `-` (SNLI: no majority) is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import parsed
from bertology.corpus.read import reader
from bertology.corpus.sniff import first_lines, suffix
from bertology.corpus.source import Problems
from bertology.corpus.tables import JSON_SUFFIXES, Row, Table, cell, choose, open_table
from bertology.corpus.wording import Words, worded
from bertology.errors import Refusal

LABELS = (
    "gold_label",
    "label",
    "is_duplicate",
    "quality",
    "score",
    "entailment_label",
    "entailment_judgment",
    "similarity",
)
PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("#1 string", "#2 string"),
    ("sentence_a", "sentence_b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("first", "second"),
)
KNOWN = tuple(name for pair in PAIRS for name in pair)
EXAMPLE = """\
label	premise	hypothesis
entailment	A dog sleeps.	An animal rests.
contradiction	A dog sleeps.	A dog runs."""


def recognises(path: Path) -> bool:
    """Whether the header names a pair, or three columns begin with labels that repeat."""
    head = first_lines(path)
    if not head or suffix(path) not in {"", ".txt", ".tsv", ".csv", *JSON_SUFFIXES}:
        return False
    table = open_table(path, Problems(skip_bad=True), known=KNOWN)
    if table.headed:
        return _named_pair(table) is not None
    labels = [row["1"] for _, row in islice(table.rows, 40)]
    return len(table.names) == 3 and 0 < len(set(labels)) < len(labels) and not any(" " in label for label in labels)


@reader(
    "pairs",
    about="sentence pairs with a label: TSV, CSV, JSON lines; GLUE's headers, or label, first, second",
    example=EXAMPLE,
    suffixes=(".tsv", ".csv", ".jsonl"),
    recognises=recognises,
)
def read_pairs(
    path: Path, problems: Problems, *, label: str = "", first: str = "", second: str = "", words: Words = "text"
) -> Iterator[Item]:
    """One item a row, its id the line's number; without a label column the label is None."""
    table = open_table(path, problems, known=(*KNOWN, *(name for name in (label, first, second) if name)))
    if not table.names:
        return
    names = _columns(table, path, label, first, second)
    label_name = names[0]
    for line, row in table.rows:
        if label_name and row.get(label_name, "").strip() == "-":
            problems.note(path, line, "no gold label")
        else:
            yield from parsed(path, problems, [(line, row)], partial(_item, names, words))


def _columns(table: Table, path: Path, label: str, first: str, second: str) -> tuple[str | None, str, str]:
    pair = _named_pair(table) or ((None, None) if table.headed or len(table.names) != 3 else ("2", "3"))
    first_name = choose(table, path, "first", first, ()) or pair[0]
    second_name = choose(table, path, "second", second, ()) or pair[1]
    label_name = choose(table, path, "label", label, LABELS if table.headed else ("1",))
    if not first_name or not second_name:
        raise Refusal(
            f"{path} does not tell which columns are the first and the second text",
            f"a header with names such as sentence1 and sentence2; the columns are: {', '.join(table.names)}",
            "Name them with the options first=COLUMN, second=COLUMN and label=COLUMN (names, or numbers from 1)",
        )
    return (None if label_name in {first_name, second_name} else label_name), first_name, second_name


def _named_pair(table: Table) -> tuple[str, str] | None:
    return next((pair for pair in PAIRS if all(name in table.names for name in pair)), None)


def _item(names: tuple[str | None, str, str], words: Words, line: int, row: Row) -> Item:
    label_name, first_name, second_name = names
    label = cell(row, label_name, "label") if label_name else None
    first, second = cell(row, first_name, "first text"), cell(row, second_name, "second text")
    return Item((worded(first, words), worded(second, words)), "pair", label, id=str(line))
