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
    def broken_name(self) -> str:
        """Its name in lines no wider than that."""
        return textwrap.fill(self.name, max(self.needed, 1), break_on_hyphens=False, break_long_words=False)

    @property
    def width(self) -> int:
        """What it takes up at least."""
        return self.needed + PADDING


def in_tables(
    rows: Sequence[str], blocks: Sequence[Sequence[Column]], width: int, most: int
) -> Iterator[Sequence[Column]]:
    """The columns of each table, at most so many.

    A block is a measure with its baselines. They stand in one table where there is room, else the measure stands
    again beside the rest of them; a table has one measure and one baseline at least, however narrow it must be.
    """
    room = width - min(max(map(len, rows), default=0) + PADDING, width // 3)
    table: list[Column] = []
    for block in blocks:
        for part in _parts(block, room, most):
            if table and (len(table) + len(part) > most or sum(one.width for one in [*table, *part]) > room):
                yield table
                table = []
            table = [*table, *part]
    if table:
        yield table


def _parts(block: Sequence[Column], room: int, most: int) -> Iterator[list[Column]]:
    measure, *beside = block
    part = [measure]
    for column in beside:
        if len(part) > 1 and (len(part) == most or sum(one.width for one in [*part, column]) > room):
            yield part
            part = [measure]
        part.append(column)
    yield part
