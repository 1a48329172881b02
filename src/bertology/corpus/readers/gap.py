"""GAP: an ambiguous pronoun and two names in a passage, of which the pronoun refers to one or neither (webster2018).

The labels of mentions are clusters: `0` for the pronoun and the name it refers to, `1` (A) or `2` (B) for another name.
Marked words are `pronoun`, `A` and `B`; the label is `A`, `B` or `neither`. A name inside a longer word (`Ann's`) is
extended to the word and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.character_spans import check_text_at, word_span
from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.sentence import Sentence, Span, sentence_from_text
from bertology.corpus.tabular_files import TextRow, open_table, required_cell
from bertology.corpus.text_files import ParseError, ParseErrorHandler, parse_all, parse_int

COLUMNS = ("id", "text", "pronoun", "pronoun-offset", "a", "a-offset", "a-coref", "b", "b-offset", "b-coref")
TRUTH_VALUES = {"TRUE": True, "FALSE": False}
EXAMPLE = """\
ID	Text	Pronoun	Pronoun-offset	A	A-offset	A-coref	B	B-offset	B-coref	URL
1	Ann met Eve when she left.	she	17	Ann	0	TRUE	Eve	8	FALSE	"""


def matches(path: Path) -> bool:
    """Whether the file has the header of GAP."""
    return "\t".join(first_lines(path)[:1]).lower().split("\t")[: len(COLUMNS)] == list(COLUMNS)


@reader("gap", description="GAP: ambiguous pronouns and two names, TSV", example=EXAMPLE, matches=matches)
def read_gap(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    """Yield one example per passage."""
    table = open_table(path, errors, header_names=("pronoun",))
    table.require_columns(path, COLUMNS, "Use the file as distributed, with its header")
    yield from parse_all(path, errors, table.rows, partial(_to_example, path, errors))


def _to_example(path: Path, errors: ParseErrorHandler, line: int, row: TextRow) -> Example:
    id = required_cell(row, "id", "id")
    passage = sentence_from_text(row["text"], id=id)
    is_antecedent = {name: _parse_bool(row, f"{name.lower()}-coref") for name in "AB"}
    if all(is_antecedent.values()):
        raise ParseError("two antecedents", "A-coref and B-coref are both TRUE", "at most one", "Correct one of them")
    clusters = {"pronoun": "0", "A": "0" if is_antecedent["A"] else "1", "B": "0" if is_antecedent["B"] else "2"}
    spans = {role: _span(passage, row, role, cluster) for role, cluster in clusters.items()}
    for role, span in spans.items():
        if passage.words[span.start : span.end] != sentence_from_text(row[role.lower()]).words:
            errors.count(path, line, "mentions extended to whole words")
    sentence = replace(
        passage,
        mentions=tuple(sorted(spans.values(), key=lambda span: (span.start, -span.end))),
        marked_words=MappingProxyType({role: tuple(range(span.start, span.end)) for role, span in spans.items()}),
        label=next((name for name, is_true in is_antecedent.items() if is_true), "neither"),
    )
    return Example((sentence,), label=sentence.label, id=id)


def _span(passage: Sentence, row: TextRow, role: str, cluster: str) -> Span:
    surface = required_cell(row, role.lower(), role)
    offset = row[f"{role.lower()}-offset"]
    start = parse_int(offset.strip())
    if start is None:
        problem = f"{role}-offset is {offset!r}"
        raise ParseError("offset is not a number", problem, "a number of characters from 0", "Correct it")
    check_text_at(passage.text, start, surface, role)
    return word_span(passage, start, start + len(surface), cluster)


def _parse_bool(row: TextRow, name: str) -> bool:
    value = row[name].strip().upper()
    if value not in TRUTH_VALUES:
        raise ParseError("missing annotation", f"{name} is {row[name]!r}", "TRUE or FALSE", "Fill it in")
    return TRUTH_VALUES[value]
