"""What the width of a terminal asks for: lines broken at words, columns of numbers in as many tables as it takes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PADDING = 3
"""What a column takes up beside its text."""
NARROWEST = 20
"""Letters beside an indent on a line, however narrow the terminal is."""


def broken(line: str, indent: int = 0) -> str:
    """The line as a terminal has room for it; other programs get it whole."""
    if not sys.stdout.isatty():
        return line
    columns = max(shutil.get_terminal_size().columns, indent + NARROWEST)
    return textwrap.fill(line, columns, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)


@dataclass(frozen=True)
class Column:
    """A name and the text of its cells."""

    name: str
    cells: tuple[str, ...]

    @property
    def needed(self) -> int:
        """The least it can be read in: no cell is broken, its name is between words."""
        return max(map(len, [*self.name.split(), *self.cells, ""]))

    @property
    def width(self) -> int:
        """What it takes up at least."""
        return self.needed + PADDING

    def heading(self, letters: int) -> list[str]:
        """Its name in lines of so many letters."""
        return textwrap.wrap(self.name, max(letters, 1), break_on_hyphens=False, break_long_words=False) or [""]

    def higher(self, letters: int) -> int:
        """The least letters that make its name fewer lines than so many letters do."""
        lines = len(self.heading(letters))
        return next(
            more for more in range(letters + 1, letters + len(self.name) + 1) if len(self.heading(more)) < lines
        )


@dataclass(frozen=True)
class Block:
    """A measure with its baselines, and what its numbers rest on where that is a column of its own."""

    measure: Column
    beside: tuple[Column, ...] = ()
    count: Column | None = None


def in_tables(labels: Sequence[Column], blocks: Sequence[Block], width: int, most: int) -> Sequence[Sequence[Column]]:
    """The columns of each table beside its labels, at most so many.

    The columns of a block stand in one table where there is room, else the measure stands again beside the rest of
    them; a table has one measure and one baseline at least, however narrow it must be. Labels are broken between words
    where that makes fewer tables, or else what numbers rest on would stand in another one.
    """
    whole, least = label_width(labels[0], width), label_least(labels[0], width)
    room = room_beside(labels, width)
    narrow = room + whole - max(least, min(whole, width // 5))
    found = [list(_tables(blocks, some, room + whole - least, most)) for some in (room, narrow)]
    return min(found, key=len)


def _tables(blocks: Sequence[Block], room: int, most_room: int, most: int) -> Iterator[Sequence[Column]]:
    table: list[Column] = []
    for block in blocks:
        for part in _parts(block, room, most_room, most):
            if table and (len(table) + len(part) > most or _taken([*table, *part]) > room):
                yield table
                table = []
            table = [*table, *part]
    if table:
        yield table


def room_beside(labels: Sequence[Column], width: int) -> int:
    """The letters of a line that are left beside labels."""
    return width - label_width(labels[0], width) - _taken(labels[1:])


def fits(labels: Sequence[Column], columns: Sequence[Column], width: int) -> bool:
    """Whether columns have room beside their labels, the first of them broken between words."""
    return label_least(labels[0], width) + _taken([*labels[1:], *columns]) <= width


def label_width(label: Column, width: int) -> int:
    """What the first label takes up: as much as it is long, but hardly more than a third of a line."""
    return min(max(label.width, len(label.name) + PADDING), max(width // 3, label_least(label, width)))


def label_least(label: Column, width: int) -> int:
    """What the first label takes up where it is broken between words, and in words that take up most of a line."""
    words = [word for text in (label.name, *label.cells) for word in text.split()]
    return min(max(map(len, [*words, ""])) + PADDING, 2 * width // 5)


def letters_of(columns: Sequence[Column], room: int) -> list[int]:
    """How wide each column is: as it needs, and what room is left goes to names that are broken, the highest first."""
    letters = [column.needed for column in columns]
    spare = room - _taken(columns)
    while True:
        heights = [len(column.heading(own)) for column, own in zip(columns, letters, strict=True)]
        wanted = [
            (-height, column.higher(own) - own, place)
            for place, (column, own, height) in enumerate(zip(columns, letters, heights, strict=True))
            if height > 1
        ]
        affordable = [(more, place) for _, more, place in sorted(wanted) if more <= spare]
        if not affordable:
            return letters
        more, place = affordable[0]
        letters[place] += more
        spare -= more


def _taken(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns)


def _parts(block: Block, room: int, most_room: int, most: int) -> Iterator[list[Column]]:
    """The columns of a block in as many parts as it takes; what it rests on stands beside the measure, or else last."""
    beside, count = list(block.beside), [block.count] if block.count else []
    part = [block.measure]
    if _taken([*part, *count, *beside[:1]]) <= most_room:
        part += count
    else:
        beside += count
    begun = len(part)
    for column in beside:
        if len(part) > begun and (len(part) == most or _taken([*part, column]) > room):
            yield part
            part, begun = [block.measure], 1
        part.append(column)
    yield part
