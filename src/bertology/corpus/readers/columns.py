"""CoNLL columns: one word a line with its tags, a blank line between sentences (conll2000; conll2003).

Columns are separated by tabs, or by blanks where the first line has no tab. Where the options do not say which column
is what (numbers from 1, or `none`), the first sentences do: the last column of BIO tags holds the entities, or the
chunks where all its labels are phrases (NP, VP ...); a column of BIO tags before it the chunks; of three or more
columns a second one that holds other things the parts of speech. `tags` are the entities (else the chunks) as BIO,
whatever scheme the file is in. The scheme is found from the first 2,000 sentences, or given by `scheme`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from bertology.corpus.bio import SCHEMES, Scheme, decode, encode, is_tag, scheme_of
from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence, Span, spell
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems, blocks
from bertology.corpus.whole_numbers import whole_number
from bertology.errors import Refusal, unknown_name

PHRASES = frozenset({"ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP"})
DOCUMENT = "-DOCSTART-"
LOOK_AHEAD = 2000
EXAMPLE = """\
EU	B-ORG
rejects	O
German	B-MISC
call	O"""
Lines = list[tuple[int, str]]


def recognises(path: Path) -> bool:
    """Whether the last of at least two columns holds nothing but BIO tags."""
    rows = [_cells(line) for line in first_lines(path) if not line.startswith((DOCUMENT, "# id"))]
    return bool(rows) and all(1 < len(row) == len(rows[0]) and is_tag(row[-1]) for row in rows)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column (from 0) is what, and the scheme of each column of tags."""

    width: int
    words: int
    pos: int | None
    chunks: int | None
    entities: int | None
    schemes: dict[int, Scheme]


@reader(
    "columns",
    about="CoNLL columns for entities, chunks and parts of speech; BIO, IOB1 or BIOES",
    example=EXAMPLE,
    suffixes=(".conll", ".bio", ".iob", ".iob2"),
    recognises=recognises,
)
def read_columns(
    path: Path,
    problems: Problems,
    *,
    words: str = "1",
    entities: str = "",
    chunks: str = "",
    pos: str = "",
    scheme: Literal["auto", "bio", "iob1", "bioes"] = "auto",
) -> Iterator[Item]:
    """One item a sentence; `-DOCSTART-` lines begin documents, numbered from 1."""
    if scheme not in ("auto", *SCHEMES):
        raise unknown_name("scheme of tags", scheme, ("auto", *SCHEMES))
    units = _sentences(blocks(path, problems))
    head = list(islice(units, LOOK_AHEAD))
    if not head:
        return
    named = {"words": words, "entities": entities, "chunks": chunks, "pos": pos}
    layout = _layout([[_cells(line) for _, line in unit[2]] for _, unit in head], path, named, scheme)
    yield from parsed(path, problems, chain(head, units), partial(_item, layout))


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _sentences(found: Iterator[Lines]) -> Iterator[tuple[int, tuple[str, str, Lines]]]:
    """Each block as its first line's number, its document, its id and its word lines."""
    document = 0
    for block in found:
        lines, name = block, ""
        while lines and lines[0][1].startswith((DOCUMENT, "# id")):
            document += lines[0][1].startswith(DOCUMENT)
            name = lines[0][1][4:].split()[0] if lines[0][1][4:].split() and lines[0][1][0] == "#" else name
            lines = lines[1:]
        if lines:
            yield lines[0][0], (str(document or ""), name, lines)


def _layout(head: list[list[list[str]]], path: Path, named: dict[str, str], scheme: str) -> Layout:
    width = len(head[0][0])
    whole = [rows for rows in head if all(len(row) == width for row in rows)]
    columns = {index: [[row[index] for row in rows] for rows in whole] for index in range(1, width)}
    guessed = _guess({index: {cell for tags in column for cell in tags} for index, column in columns.items()}, width)
    chosen = {role: _number(role, text, width, path) if text else guessed.get(role) for role, text in named.items()}
    tagged = {index for role, index in chosen.items() if role in {"entities", "chunks"} and index is not None}
    given: Scheme | None = next((name for name in SCHEMES if name == scheme), None)
    schemes: dict[int, Scheme] = {}
    for index in tagged:
        schemes[index] = given or scheme_of(columns.get(index, []))
    return Layout(width, chosen["words"] or 0, chosen["pos"], chosen["chunks"], chosen["entities"], schemes)


def _guess(cells: dict[int, set[str]], width: int) -> dict[str, int]:
    """What each column after the first holds, as the module's first lines say."""
    tagged = [index for index in range(1, width) if all(is_tag(cell) for cell in cells[index])]
    guessed: dict[str, int] = {}
    if tagged:
        labels = {cell[2:] for cell in cells[tagged[-1]]} - {""}
        if labels and labels <= PHRASES:
            guessed["chunks"] = tagged[-1]
        else:
            guessed["entities"] = tagged[-1]
            guessed |= {"chunks": tagged[-2]} if len(tagged) > 1 else {}
    if width > 2 and 1 not in tagged:
        guessed["pos"] = 1
    return guessed


def _number(role: str, text: str, width: int, path: Path) -> int | None:
    if text == "none" and role != "words":
        return None
    number = whole_number(text)
    if not number or number > width:
        raise Refusal(
            f"{path} has {width} columns, and the option {role} is {text!r}",
            f"a number from 1 to {width}" + ("" if role == "words" else ", or none"),
            f"Give the column with the option {role}=NUMBER",
        )
    return number - 1


def _item(layout: Layout, line: int, unit: tuple[str, str, Lines]) -> Item:
    document, name, lines = unit
    rows: list[list[str]] = []
    for number, text in lines:
        row = _cells(text)
        if len(row) != layout.width:
            found = f"The line has {len(row)} columns"
            expected = f"{layout.width} as in the file's first line"
            raise Fault("wrong column count", found, expected, "Correct the line", line=number)
        if not row[layout.words].strip():
            raise Fault("empty word", "The word is empty", "a word in each line", "Fill it in", line=number)
        rows.append(row)
    words = tuple(row[layout.words] for row in rows)
    numbers = [number for number, _ in lines]
    chunks, entities = (_spans(rows, column, layout, numbers) for column in (layout.chunks, layout.entities))
    tagged = entities if entities is not None else chunks
    text, offsets = spell(words)
    sentence = Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=name or str(line),
        document=document,
        pos=None if layout.pos is None else tuple(row[layout.pos] for row in rows),
        tags=None if tagged is None else encode(tagged, len(words)),
        chunks=chunks,
        entities=entities,
    )
    return Item((sentence,), id=sentence.id)


def _spans(rows: list[list[str]], column: int | None, layout: Layout, lines: list[int]) -> tuple[Span, ...] | None:
    if column is None:
        return None
    return decode([row[column].strip() for row in rows], scheme=layout.schemes[column], lines=lines)
