"""CoNLL columns: one word per line with its tags, blank lines between sentences (conll2000; conll2003).

Columns are separated by tabs, or by spaces if the first line has no tab. Options name the column of each annotation
(a number from 1, or `none`). Otherwise the first sentences determine it: the last column of BIO tags contains the
entities, or the chunks if all its labels are phrases (NP, VP ...); a column of BIO tags before it contains the chunks;
of three or more columns, the second contains the parts of speech if it has no BIO tags. `tags` are the entities, else
the chunks, as BIO tags in any case. The option `scheme` names the scheme of the file; otherwise the first 2,000
sentences determine it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from bertology.corpus.bio import SCHEMES, Scheme, decode, detect_scheme, encode, is_tag
from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.sentence import Sentence, Span, join_words
from bertology.corpus.text_files import NumberedLines, ParseError, ParseErrorHandler, line_groups, parse_all, parse_int
from bertology.errors import Refusal

PHRASES = frozenset({"ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP"})
DOCUMENT = "-DOCSTART-"
MAX_SAMPLE_SENTENCES = 2000
EXAMPLE = """\
EU	B-ORG
rejects	O
German	B-MISC
call	O"""


def matches(path: Path) -> bool:
    """Whether the last of at least two columns contains only BIO tags."""
    rows = [_cells(line) for line in first_lines(path) if not line.startswith((DOCUMENT, "# id"))]
    return bool(rows) and all(1 < len(row) == len(rows[0]) and is_tag(row[-1]) for row in rows)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The column (from 0) of each annotation, and the scheme of each column of tags."""

    width: int
    words: int
    pos: int | None
    chunks: int | None
    entities: int | None
    schemes: dict[int, Scheme]


@reader(
    "conll",
    description="CoNLL columns: entities, chunks and parts of speech as BIO, IOB1 or BIOES tags",
    example=EXAMPLE,
    suffixes=(".conll", ".bio", ".iob", ".iob2"),
    matches=matches,
)
def read_conll(
    path: Path,
    errors: ParseErrorHandler,
    *,
    words: str = "1",
    entities: str = "",
    chunks: str = "",
    pos: str = "",
    scheme: Literal["auto", "bio", "iob1", "bioes"] = "auto",
) -> Iterator[Example]:
    """Yield one example per sentence; `-DOCSTART-` lines begin documents, numbered from 1."""
    sentences = _sentences(line_groups(path, errors))
    sample = list(islice(sentences, MAX_SAMPLE_SENTENCES))
    if not sample:
        return
    options = {"words": words, "entities": entities, "chunks": chunks, "pos": pos}
    layout = _layout([[_cells(line) for _, line in lines] for _, (_, _, lines) in sample], path, options, scheme)
    yield from parse_all(path, errors, chain(sample, sentences), partial(_to_example, layout))


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _sentences(groups: Iterator[NumberedLines]) -> Iterator[tuple[int, tuple[str, str, NumberedLines]]]:
    """Yield the first line number of each sentence, its document, its id and its word lines."""
    n_documents = 0
    for group in groups:
        lines, id = group, ""
        while lines and lines[0][1].startswith((DOCUMENT, "# id")):
            line = lines[0][1]
            n_documents += line.startswith(DOCUMENT)
            id = line[4:].split()[0] if line[4:].split() and line[0] == "#" else id
            lines = lines[1:]
        if lines:
            yield lines[0][0], (str(n_documents or ""), id, lines)


def _layout(
    first_sentences: list[list[list[str]]], path: Path, column_options: dict[str, str], scheme: str
) -> ColumnLayout:
    width = len(first_sentences[0][0])
    well_formed = [rows for rows in first_sentences if all(len(row) == width for row in rows)]
    columns = {index: [[row[index] for row in rows] for rows in well_formed] for index in range(1, width)}
    inferred = _infer_columns(
        {index: {cell for cells in column for cell in cells} for index, column in columns.items()}, width
    )
    layout = {
        role: _column_index(role, text, width, path) if text else inferred.get(role)
        for role, text in column_options.items()
    }
    named_scheme: Scheme | None = next((name for name in SCHEMES if name == scheme), None)
    schemes: dict[int, Scheme] = {}
    for index in (layout["entities"], layout["chunks"]):
        if index is not None:
            schemes[index] = named_scheme or detect_scheme(columns.get(index, []))
    return ColumnLayout(width, layout["words"] or 0, layout["pos"], layout["chunks"], layout["entities"], schemes)


def _infer_columns(cells: dict[int, set[str]], width: int) -> dict[str, int]:
    """Infer the annotations of the columns after the first, by the rules in the docstring of the module."""
    tag_columns = [index for index in range(1, width) if all(is_tag(cell) for cell in cells[index])]
    inferred: dict[str, int] = {}
    if tag_columns:
        labels = {cell[2:] for cell in cells[tag_columns[-1]]} - {""}
        if labels and labels <= PHRASES:
            inferred["chunks"] = tag_columns[-1]
        else:
            inferred["entities"] = tag_columns[-1]
            inferred |= {"chunks": tag_columns[-2]} if len(tag_columns) > 1 else {}
    if width > 2 and 1 not in tag_columns:
        inferred["pos"] = 1
    return inferred


def _column_index(role: str, text: str, width: int, path: Path) -> int | None:
    if text == "none" and role != "words":
        return None
    number = parse_int(text)
    if not number or number > width:
        raise Refusal(
            f"{path} has {width} columns, and the option {role} is {text!r}",
            f"a number from 1 to {width}" + ("" if role == "words" else ", or none"),
            f"Name the column with --format-option {role}=NUMBER",
        )
    return number - 1


def _to_example(layout: ColumnLayout, line: int, unit: tuple[str, str, NumberedLines]) -> Example:
    document, id, lines = unit
    rows: list[list[str]] = []
    for number, text in lines:
        row = _cells(text)
        if len(row) != layout.width:
            problem, expected = f"The line has {len(row)} columns", f"{layout.width} as in the first line of the file"
            raise ParseError("wrong column count", problem, expected, "Correct the line", line=number)
        if not row[layout.words].strip():
            raise ParseError("empty word", "The word is empty", "a word in each line", "Fill it in", line=number)
        rows.append(row)
    words = tuple(row[layout.words] for row in rows)
    numbers = [number for number, _ in lines]
    chunks, entities = (_spans(rows, column, layout, numbers) for column in (layout.chunks, layout.entities))
    tag_spans = entities if entities is not None else chunks
    text, offsets = join_words(words)
    sentence = Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=id or str(line),
        document=document,
        pos=None if layout.pos is None else tuple(row[layout.pos] for row in rows),
        tags=None if tag_spans is None else encode(tag_spans, len(words)),
        chunks=chunks,
        entities=entities,
    )
    return Example((sentence,), id=sentence.id)


def _spans(
    rows: list[list[str]], column: int | None, layout: ColumnLayout, lines: list[int]
) -> tuple[Span, ...] | None:
    if column is None:
        return None
    return decode([row[column].strip() for row in rows], scheme=layout.schemes[column], lines=lines)
