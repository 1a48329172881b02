"""Coreference columns: CoNLL-2012 files and LitBank's, one item a sentence (pradhan2012; bamman2020).

Read are the words, parts of speech and names where filled in, and the mentions, whose label is the cluster's number in
its document (the first two columns: name and part). Parses, predicates and speakers are not read. A folder is read
file after file. With `unit=document` the sentences of a document make one item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from bertology.corpus.brackets import Cell, read_mentions
from bertology.corpus.corpus import Item
from bertology.corpus.documents import Unit, in_units
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence, Span, spell
from bertology.corpus.sniff import files_below, first_lines
from bertology.corpus.source import Problems, blocks
from bertology.errors import unknown_name

DOCUMENT, PART, NUMBER, WORD, POS, NAME = 0, 1, 2, 3, 4, 10
FEWEST = 12
BLANK = {"", "-", "_", "*"}
NAMED = re.compile(r"\((?P<label>[^()*]+)\*?(?P<alone>\))?|\*(?P<closed>\))?")
FILES = r".*([._])conll"
EXAMPLE = """\
#begin document (story); part 0
story	0	0	Ann	_	_	_	_	_	_	_	_	(0)
story	0	1	left	_	_	_	_	_	_	_	_	-
story	0	2	her	_	_	_	_	_	_	_	_	(0)|(1
story	0	3	home	_	_	_	_	_	_	_	_	1)

#end document"""
Lines = list[tuple[int, str]]


def recognises(path: Path) -> bool:
    """Whether a file, or a folder's first one, opens with `#begin document`."""
    first = next(iter(files_below(path, FILES)), path) if path.is_dir() else path
    return "".join(first_lines(first)[:1]).startswith("#begin document")


@reader(
    "coreference",
    about="CoNLL-2012 and LitBank coreference columns (a file or a folder)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_coreference(path: Path, problems: Problems, *, unit: Unit = "sentence") -> Iterator[Item]:
    """One item a sentence or a document, in the order of the text."""
    if unit not in ("sentence", "document"):
        raise unknown_name("unit of a corpus", unit, ("sentence", "document"))
    yield from in_units(_read(path, problems), unit)


def _read(path: Path, problems: Problems) -> Iterator[Item]:
    for file in files_below(path, FILES) if path.is_dir() else [path]:
        numbers = count(1)
        yield from parsed(file, problems, _sentences(blocks(file, problems)), partial(_item, file, problems, numbers))


def _sentences(found: Iterator[Lines]) -> Iterator[tuple[int, Lines]]:
    for block in found:
        lines = [(number, line) for number, line in block if not line.startswith(("#begin document", "#end document"))]
        if lines:
            yield lines[0][0], lines


def _item(path: Path, problems: Problems, numbers: Iterator[int], first: int, lines: Lines) -> Item:
    ordinal = next(numbers)
    rows = [_row(index, number, line) for index, (number, line) in enumerate(lines)]
    words = tuple(row[WORD] for row in rows)
    cells = [
        Cell(index, index + 1, number, row[-1].strip())
        for index, ((number, _), row) in enumerate(zip(lines, rows, strict=True))
        if row[-1].strip() not in BLANK
    ]
    mentions = read_mentions(cells)
    for reason, line in mentions.left_out:
        problems.note(path, line, reason)
    document = f"{rows[0][DOCUMENT]}_{rows[0][PART].lstrip('0') or '0'}"
    text, offsets = spell(words)
    sentence = Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=f"{document}-{ordinal}",
        document=document,
        pos=tuple(row[POS] for row in rows) if any(row[POS] not in BLANK for row in rows) else None,
        entities=_names(rows, lines),
        mentions=mentions.spans,
    )
    return Item((sentence,), id=sentence.id, source=path.name)


def _row(index: int, number: int, line: str) -> list[str]:
    row = line.split("\t") if "\t" in line else line.split()
    if len(row) < FEWEST:
        found = f"The line has {len(row)} columns"
        raise Fault("wrong column count", found, f"at least {FEWEST}, mentions last", "Correct the line", line=number)
    if row[NUMBER].strip() != str(index):
        found = f"The word's number is {row[NUMBER]!r}"
        remedy = "Number the words of each sentence, a blank line between sentences"
        raise Fault("word number out of order", found, f"{index}, counting from 0", remedy, line=number)
    if not row[WORD].strip():
        raise Fault("empty word", "The fourth column is empty", "a word", "Fill it in", line=number)
    return row


def _names(rows: list[list[str]], lines: Lines) -> tuple[Span, ...] | None:
    """The names of column 11: `(ORG*` opens one, `*)` closes it, `(ORG)` is one of a single word."""
    if all(row[NAME] in {"", "-", "_"} for row in rows):
        return None
    spans: list[Span] = []
    start, label = -1, ""
    for index, (row, (number, _)) in enumerate(zip(rows, lines, strict=True)):
        match = NAMED.fullmatch(row[NAME].strip())
        if match is None or (match["label"] and start >= 0) or (match["closed"] and start < 0):
            expected = "*, (LABEL*, *) or (LABEL), each opened and closed"
            raise Fault("wrong bracket", f"The name is {row[NAME]!r}", expected, "Correct column 11", line=number)
        if match["label"]:
            start, label = index, match["label"]
        if match["alone"] or match["closed"]:
            spans.append(Span(start, index + 1, label))
            start = -1
    if start >= 0:
        found = f"The name {label!r} is not closed"
        raise Fault("unmatched bracket", found, "*) at its last word", "Correct column 11", line=lines[start][0])
    return tuple(spans)
