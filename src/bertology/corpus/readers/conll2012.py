"""CoNLL-2012 coreference columns, also used by LitBank (pradhan2012; bamman2020).

Words, mentions and, if present, parts of speech and named entities are read. The label of a mention is its cluster in
the document, which the first two columns identify (name and part). Parses, predicates and speakers are ignored. All
files of a directory are read. With `unit=document` an example is a document rather than a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from bertology.corpus.coreference_brackets import BracketCell, read_mentions
from bertology.corpus.documents import CorpusUnit, group_documents
from bertology.corpus.example import Example
from bertology.corpus.read import find_files, first_lines, reader
from bertology.corpus.sentence import Sentence, Span, join_words
from bertology.corpus.text_files import NumberedLines, ParseError, ParseErrorHandler, line_groups, parse_all

DOCUMENT, PART, NUMBER, WORD, POS, NAME = 0, 1, 2, 3, 4, 10
MIN_COLUMNS = 12
BLANK = {"", "-", "_", "*"}
NAME_PATTERN = re.compile(r"\((?P<label>[^()*]+)\*?(?P<alone>\))?|\*(?P<closed>\))?")
FILES = r".*([._])conll"
EXAMPLE = """\
#begin document (story); part 0
story	0	0	Ann	_	_	_	_	_	_	_	_	(0)
story	0	1	left	_	_	_	_	_	_	_	_	-
story	0	2	her	_	_	_	_	_	_	_	_	(0)|(1
story	0	3	home	_	_	_	_	_	_	_	_	1)

#end document"""


def matches(path: Path) -> bool:
    """Whether the (first) file begins with `#begin document`."""
    first = next(iter(find_files(path, FILES)), path)
    return "".join(first_lines(first)[:1]).startswith("#begin document")


@reader(
    "conll2012",
    description="CoNLL-2012 and LitBank coreference columns (a file or a directory)",
    example=EXAMPLE,
    suffixes=(".conll",),
    matches=matches,
)
def read_conll2012(path: Path, errors: ParseErrorHandler, *, unit: CorpusUnit = "sentence") -> Iterator[Example]:
    """Yield one example per sentence or document."""
    yield from group_documents(_read_sentences(path, errors), unit)


def _read_sentences(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    for file in find_files(path, FILES):
        sentences = _sentences(line_groups(file, errors))
        yield from parse_all(file, errors, sentences, partial(_to_example, file, errors, count(1)))


def _sentences(groups: Iterator[NumberedLines]) -> Iterator[tuple[int, NumberedLines]]:
    for group in groups:
        lines = [(number, line) for number, line in group if not line.startswith(("#begin document", "#end document"))]
        if lines:
            yield lines[0][0], lines


def _to_example(
    path: Path, errors: ParseErrorHandler, ordinals: Iterator[int], first_line: int, lines: NumberedLines
) -> Example:
    ordinal = next(ordinals)
    rows = [_row(index, number, line) for index, (number, line) in enumerate(lines)]
    words = tuple(row[WORD] for row in rows)
    cells = [
        BracketCell(index, index + 1, number, row[-1].strip())
        for index, ((number, _), row) in enumerate(zip(lines, rows, strict=True))
        if row[-1].strip() not in BLANK
    ]
    mentions = read_mentions(cells)
    for reason, line in mentions.skipped:
        errors.count(path, line, reason)
    document = f"{rows[0][DOCUMENT]}_{rows[0][PART].lstrip('0') or '0'}"
    text, offsets = join_words(words)
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
    return Example((sentence,), id=sentence.id, source=path.name)


def _row(index: int, number: int, line: str) -> list[str]:
    row = line.split("\t") if "\t" in line else line.split()
    if len(row) < MIN_COLUMNS:
        problem, expected = f"The line has {len(row)} columns", f"at least {MIN_COLUMNS}, the last for mentions"
        raise ParseError("wrong column count", problem, expected, "Correct the line", line=number)
    if row[NUMBER].strip() != str(index):
        problem = f"The number of the word is {row[NUMBER]!r}"
        remedy = "Number the words of each sentence, with a blank line between sentences"
        raise ParseError("word number out of order", problem, f"{index}, counting from 0", remedy, line=number)
    if not row[WORD].strip():
        raise ParseError("empty word", "The fourth column is empty", "a word", "Fill it in", line=number)
    return row


def _names(rows: list[list[str]], lines: NumberedLines) -> tuple[Span, ...] | None:
    """Return the named entities of column 11: `(ORG*` begins one, `*)` ends it, `(ORG)` is one of a single word."""
    if all(row[NAME] in {"", "-", "_"} for row in rows):
        return None
    spans: list[Span] = []
    start, label = -1, ""
    for index, (row, (number, _)) in enumerate(zip(rows, lines, strict=True)):
        match = NAME_PATTERN.fullmatch(row[NAME].strip())
        if match is None or (match["label"] and start >= 0) or (match["closed"] and start < 0):
            expected = "*, (LABEL*, *) or (LABEL), with matching brackets"
            raise ParseError("wrong bracket", f"The name is {row[NAME]!r}", expected, "Correct column 11", line=number)
        if match["label"]:
            start, label = index, match["label"]
        if match["alone"] or match["closed"]:
            spans.append(Span(start, index + 1, label))
            start = -1
    if start >= 0:
        problem = f"The name {label!r} has no closing bracket"
        raise ParseError("unmatched bracket", problem, "*) at its last word", "Correct column 11", line=lines[start][0])
    return tuple(spans)
