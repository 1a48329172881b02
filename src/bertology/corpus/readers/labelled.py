"""Sentences with a class: TSV, CSV or JSON lines with a label and a text, or `label text` with a space between.

Columns are found by their header (label, gold_label, class ...; text, sentence, review ...), or named by the options
`label` and `text`, by name or number from 1. In two columns without header the label is the one without blanks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.readers.pairs import recognises as is_pairs
from bertology.corpus.sniff import first_lines, suffix
from bertology.corpus.source import Problems, lines
from bertology.corpus.tables import JSON_SUFFIXES, Row, Table, cell, choose, open_table
from bertology.corpus.wording import Words, worded
from bertology.errors import Refusal

LABELS = ("gold_label", "label", "labels", "class", "category", "sentiment", "polarity", "target")
TEXTS = ("text", "sentence", "review", "content", "tweet", "comment", "body", "headline")
EXAMPLE = """\
label	text
positive	A film to see twice.
negative	I left before the end."""


def recognises(path: Path) -> bool:
    """Whether the header names a label and a text, or labels that repeat stand before or after texts."""
    head = first_lines(path)
    if not head or suffix(path) not in {"", ".txt", ".tsv", ".csv", *JSON_SUFFIXES} or is_pairs(path):
        return False
    if "\t" not in head[0] and suffix(path) in {"", ".txt"} and not head[0].startswith("{"):
        return _is_spaced(head)
    table = open_table(path, Problems(skip_bad=True), known=(*LABELS, *TEXTS))
    if table.headed:
        return any(name in table.names for name in LABELS) and any(name in table.names for name in TEXTS)
    return len(table.names) == 2 and _label_column([row for _, row in islice(table.rows, 40)]) is not None


@reader(
    "labelled",
    about="sentences with a class: TSV, CSV, JSON lines, or `label text`",
    example=EXAMPLE,
    suffixes=(".tsv", ".csv", ".jsonl"),
    recognises=recognises,
)
def read_labelled(
    path: Path, problems: Problems, *, label: str = "", text: str = "", words: Words = "text"
) -> Iterator[Item]:
    """One item a row, its id the line's number."""
    head = first_lines(path)
    if head and not (label or text) and suffix(path) in {"", ".txt"} and "\t" not in head[0] and head[0][0] != "{":
        yield from parsed(path, problems, _filled(path, problems), partial(_spaced_item, words))
        return
    table = open_table(path, problems, known=(*LABELS, *TEXTS, label or "label", text or "text"))
    if not table.names:
        return
    table, label_name, text_name = _columns(table, path, label, text)
    yield from parsed(path, problems, table.rows, partial(_item, label_name, text_name, words))


def _columns(table: Table, path: Path, label: str, text: str) -> tuple[Table, str, str]:
    """The table and the names of its label and text columns."""
    label_name = choose(table, path, "label", label, LABELS)
    text_name = choose(table, path, "text", text, TEXTS)
    if not table.headed and len(table.names) == 2 and not (label_name and text_name):
        head = list(islice(table.rows, 40))
        table = replace(table, rows=chain(head, table.rows))
        label_name = label_name or {"1": "2", "2": "1"}.get(text_name or "") or _label_column([row for _, row in head])
        text_name = text_name or {"1": "2", "2": "1"}.get(label_name or "")
    if not label_name or not text_name:
        raise Refusal(
            f"{path} does not tell which column is the label and which the text",
            f"a header with names such as label and text; the columns are: {', '.join(table.names)}",
            "Name them with the options label=COLUMN and text=COLUMN (names, or numbers from 1)",
        )
    return table, label_name, text_name


def _label_column(rows: list[Row]) -> str | None:
    """Of two columns the one whose cells hold no blank, where the other's do."""
    blank = {name: any(" " in row.get(name, "").strip() for row in rows) for name in ("1", "2")}
    return {(False, True): "1", (True, False): "2"}.get((blank["1"], blank["2"]))


def _item(label_name: str, text_name: str, words: Words, line: int, row: Row) -> Item:
    return _labelled(cell(row, label_name, "label"), cell(row, text_name, "text"), words, line)


def _filled(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in lines(path, problems) if line.strip())


def _spaced_item(words: Words, line: int, text: str) -> Item:
    label, _, rest = text.strip().partition(" ")
    if not rest.strip():
        raise Fault(
            "missing text", f"After the label {label!r} nothing follows", "a label, a space, a text", "Fill it in"
        )
    return _labelled(label, rest.strip(), words, line)


def _labelled(label: str, text: str, words: Words, line: int) -> Item:
    sentence = replace(worded(text, words, id=str(line)), label=label)
    return Item((sentence,), label=label, id=sentence.id)


def _is_spaced(head: tuple[str, ...]) -> bool:
    """Whether every line begins with a number or a word of praise or blame, and these repeat."""
    labels = [line.partition(" ")[0].lower() for line in head]
    known = {"pos", "neg", "positive", "negative", "neutral"}
    return len(set(labels)) < len(labels) and all(label.isdecimal() or label in known for label in labels)
