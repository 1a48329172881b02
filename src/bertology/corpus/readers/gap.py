"""GAP: an ambiguous pronoun and two names in a passage, one or neither of which it refers to (webster2018).

Mentions carry the cluster: the pronoun and the name it refers to `0`, another name `1` (A) or `2` (B). The marks
`pronoun`, `A` and `B` give their words; the label is `A`, `B` or `neither`. A name that stands in a longer word
(`Ann's`) is widened to it and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.characters import check_surface, covering
from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence, Span, from_text
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems
from bertology.corpus.tables import Row, cell, open_table
from bertology.corpus.whole_numbers import whole_number
from bertology.errors import Refusal

COLUMNS = ("id", "text", "pronoun", "pronoun-offset", "a", "a-offset", "a-coref", "b", "b-offset", "b-coref")
TRUTH = {"TRUE": True, "FALSE": False}
EXAMPLE = """\
ID	Text	Pronoun	Pronoun-offset	A	A-offset	A-coref	B	B-offset	B-coref	URL
1	Ann met Eve when she left.	she	17	Ann	0	TRUE	Eve	8	FALSE	"""


def recognises(path: Path) -> bool:
    """Whether the header is GAP's."""
    return "\t".join(first_lines(path)[:1]).lower().split("\t")[: len(COLUMNS)] == list(COLUMNS)


@reader("gap", about="GAP: ambiguous pronouns and two names, TSV", example=EXAMPLE, recognises=recognises)
def read_gap(path: Path, problems: Problems) -> Iterator[Item]:
    """One item a passage."""
    table = open_table(path, problems, known=("pronoun",))
    missing = [name for name in COLUMNS if name not in table.names]
    if table.names and missing:
        raise Refusal(
            f"{path} lacks the column {missing[0]!r}",
            f"a header with {', '.join(COLUMNS)}",
            "Take the file as it is distributed, header included",
        )
    yield from parsed(path, problems, table.rows, partial(_item, path, problems))


def _item(path: Path, problems: Problems, line: int, row: Row) -> Item:
    name = cell(row, "id", "id")
    passage = from_text(row["text"], id=name)
    coreferent = {letter: _truth(row, f"{letter.lower()}-coref") for letter in "AB"}
    if all(coreferent.values()):
        raise Fault("two antecedents", "A-coref and B-coref are both TRUE", "at most one", "Correct one of them")
    clusters = {"pronoun": "0", "A": "0" if coreferent["A"] else "1", "B": "0" if coreferent["B"] else "2"}
    spans = {role: _span(passage, row, role, cluster) for role, cluster in clusters.items()}
    for role, span in spans.items():
        if " ".join(passage.words[span.start : span.end]) != " ".join(from_text(row[role.lower()]).words):
            problems.note(path, line, "mention widened to whole words")
    sentence = replace(
        passage,
        mentions=tuple(sorted(spans.values(), key=lambda span: (span.start, -span.end))),
        marks=MappingProxyType({role: tuple(range(span.start, span.end)) for role, span in spans.items()}),
        label=next((letter for letter, true in coreferent.items() if true), "neither"),
    )
    return Item((sentence,), label=sentence.label, id=name)


def _span(passage: Sentence, row: Row, role: str, cluster: str) -> Span:
    surface = cell(row, role.lower(), role)
    start = whole_number(row[f"{role.lower()}-offset"].strip())
    if start is None:
        found = f"{role}-offset is {row[f'{role.lower()}-offset']!r}"
        raise Fault("offset is no number", found, "a number of characters from 0", "Correct it")
    check_surface(passage.text, start, surface, role)
    return covering(passage, start, start + len(surface), cluster)


def _truth(row: Row, name: str) -> bool:
    value = row[name].strip().upper()
    if value not in TRUTH:
        raise Fault("missing annotation", f"{name} is {row[name]!r}", "TRUE or FALSE", "Fill it in")
    return TRUTH[value]
