"""Mentions in the bracket notation of coreference files: `(3`, `3)`, `(3)`, several in a cell (conll2012; corefud).

CoNLL-2012 puts `|` between them and names only the cluster; CorefUD writes them one after the other and adds
attributes after a hyphen at the opening bracket: `(e1-person-1(e2-place)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import Span

BRACKET = re.compile(r"\((?P<opened>[^()|]+)(?P<alone>\))?|(?P<closed>[^()|]+)\)|\|")
REMEDY = "Correct the brackets of this sentence"


@dataclass(frozen=True, slots=True)
class Cell:
    """One annotated token: how many words stand before it and up to it (the same for an empty token)."""

    before: int
    upto: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """The mentions of a sentence, and why and at which line others were left out."""

    spans: tuple[Span, ...]
    left_out: tuple[tuple[str, int], ...]


def read_mentions(cells: Iterable[Cell], cluster: Callable[[str], str] = str) -> Mentions:
    """The mentions that the cells bracket; `cluster` takes the cluster id out of what follows an opening bracket."""
    spans: list[Span] = []
    left_out: list[tuple[str, int]] = []
    open_at: dict[str, list[Cell]] = {}

    def close(name: str, first: Cell, last: Cell) -> None:
        if "[" in name:
            left_out.append(("part of a discontinuous mention", first.line))
        elif first.before == last.upto:
            left_out.append(("mention of empty tokens only", first.line))
        else:
            spans.append(Span(first.before, last.upto, name))

    for cell in cells:
        for kind, content in _brackets(cell):
            name = content if kind == "closed" else cluster(content)
            if kind == "opened":
                open_at.setdefault(name, []).append(cell)
            elif kind == "alone":
                close(name, cell, cell)
            elif open_at.get(name):
                close(name, open_at[name].pop(), cell)
            else:
                found = f"The mention {name!r} is closed and was not opened in this sentence"
                raise Fault("unmatched bracket", found, f"({name} before it", REMEDY, line=cell.line)
    for name, waiting in open_at.items():
        if waiting:
            found = f"The mention {name!r} is opened and not closed in this sentence"
            raise Fault("unmatched bracket", found, f"{name}) after it", REMEDY, line=waiting[-1].line)
    return Mentions(tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.label))), tuple(left_out))


def _brackets(cell: Cell) -> Iterable[tuple[str, str]]:
    position = 0
    for match in BRACKET.finditer(cell.text):
        if match.start() != position:
            break
        position = match.end()
        if match["opened"]:
            yield ("alone" if match["alone"] else "opened"), match["opened"]
        elif match["closed"]:
            yield "closed", match["closed"]
    if position != len(cell.text):
        found = f"{cell.text!r} is no bracket notation"
        raise Fault("wrong bracket", found, "(id, id) or (id), with | between several", REMEDY, line=cell.line)
