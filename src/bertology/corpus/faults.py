"""What a parser raises at a fault in one item, and the loop that hands it to `Problems` and goes on with the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bertology.corpus.source import Problems

Line = TypeVar("Line", int, None)
Unit = TypeVar("Unit")
Made = TypeVar("Made")


class Fault(Exception):
    """One item cannot be read: `reason` is the short class it is counted under, `line` where known its line."""

    def __init__(self, reason: str, found: str, expected: str, remedy: str, *, line: int | None = None) -> None:
        super().__init__(reason, found, expected, remedy, line)
        self.reason = reason
        self.found = found
        self.expected = expected
        self.remedy = remedy
        self.line = line

    def report(self, path: Path, problems: Problems, line: int | None = None) -> None:
        """Refuse the file for this fault, or count it; `line` stands in where the fault does not know its own."""
        where = line if self.line is None else self.line
        problems.found(path, where, self.reason, self.found, self.expected, self.remedy)


def parsed(
    path: Path, problems: Problems, units: Iterable[tuple[Line, Unit]], parse: Callable[[Line, Unit], Made]
) -> Iterator[Made]:
    """What `parse` makes of each unit and its line; a unit with a fault is refused or counted, then left out."""
    for line, unit in units:
        try:
            made = parse(line, unit)
        except Fault as fault:
            fault.report(path, problems, line)
            continue
        yield made
