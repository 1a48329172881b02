"""Parse mentions in bracket notation: `(3`, `3)`, `(3)`, several per cell (conll2012; corefud).

CoNLL-2012 separates brackets with `|` and names only the cluster; CorefUD has no separator and adds attributes after a
hyphen to the opening bracket: `(e1-person-1(e2-place)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bertology.corpus.sentence import Span
from bertology.corpus.text_files import ParseError

BRACKET = re.compile(r"\((?P<opened>[^()|]+)(?P<alone>\))?|(?P<closed>[^()|]+)\)|\|")
REMEDY = "Correct the brackets of this sentence"


@dataclass(frozen=True, slots=True)
class BracketCell:
    """The brackets of a token, with the number of words before it and through it (equal for an empty token)."""

    words_before: int
    words_through: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedMentions:
    """The mentions of a sentence, and the reason and line of each ignored mention."""

    spans: tuple[Span, ...]
    skipped: tuple[tuple[str, int], ...]


def read_mentions(cells: Iterable[BracketCell], cluster_id: Callable[[str], str] = str) -> ParsedMentions:
    """Parse the mentions of a sentence; `cluster_id` extracts the cluster from the text after an opening bracket."""
    spans: list[Span] = []
    skipped: list[tuple[str, int]] = []
    open_cells: dict[str, list[BracketCell]] = {}

    def close(name: str, first: BracketCell, last: BracketCell) -> None:
        if "[" in name:
            skipped.append(("parts of discontinuous mentions ignored", first.line))
        elif first.words_before == last.words_through:
            skipped.append(("mentions of empty tokens ignored", first.line))
        else:
            spans.append(Span(first.words_before, last.words_through, name))

    for cell in cells:
        for kind, content in _brackets(cell):
            name = content if kind == "closed" else cluster_id(content)
            if kind == "opened":
                open_cells.setdefault(name, []).append(cell)
            elif kind == "alone":
                close(name, cell, cell)
            elif open_cells.get(name):
                close(name, open_cells[name].pop(), cell)
            else:
                problem = f"The mention {name!r} has a closing but no opening bracket in this sentence"
                raise ParseError("unmatched bracket", problem, f"({name} before it", REMEDY, line=cell.line)
    for name, unclosed in open_cells.items():
        if unclosed:
            problem = f"The mention {name!r} has an opening but no closing bracket in this sentence"
            raise ParseError("unmatched bracket", problem, f"{name}) after it", REMEDY, line=unclosed[-1].line)
    return ParsedMentions(tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.label))), tuple(skipped))


def _brackets(cell: BracketCell) -> Iterable[tuple[str, str]]:
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
        problem = f"{cell.text!r} is not bracket notation"
        expected = "(id, id) or (id), with | between several"
        raise ParseError("wrong bracket", problem, expected, REMEDY, line=cell.line)
