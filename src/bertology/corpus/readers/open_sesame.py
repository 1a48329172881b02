"""Open Sesame stimuli: a word that must agree, its antecedent and distractors (lin2019).

`agr.N` and `refl.N`: sentence, index of the agreeing word, indices of the antecedent and of the distractors (can be
empty); `aux.*` and `sbjn*`: sentence, index of the target. Marked words are `target`, `antecedent`, `distractor`.
Indices count words as BERT's basic tokeniser splits them (three in `fish's`) and are mapped to words between spaces.
Factors of `agr.N` and `refl.N`: `condition` (table 2 of the paper) and `cell` (the file).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.example import Example
from bertology.corpus.open_sesame_grammar import AGREEMENT_CELLS, REFLEXIVE_CELLS, ROLES
from bertology.corpus.read import find_files, reader
from bertology.corpus.sentence import split_at_spaces
from bertology.corpus.text_files import ParseError, ParseErrorHandler, non_blank_lines, parse_all, parse_int

FILES = r"(agr|refl)\.\d+|(aux|sbjn|sbjn-join)\.(train|test|gen\w*)"
BASIC_TOKEN = re.compile(r"\w+|[^\w\s]")
ROLES_BY_N_COLUMNS = {2: ROLES[:1], 4: ROLES}
EXAMPLE = """\
the cat near your birds does cry	5	0 1	3 4"""


def matches(path: Path) -> bool:
    """Whether the path is, or contains, a file with one of the published names."""
    return any(re.fullmatch(FILES, file.name) for file in find_files(path, FILES))


@reader(
    "open_sesame",
    description="Open Sesame stimuli: agreement, reflexives, auxiliaries, subjects (a file or the directory)",
    example=EXAMPLE,
    matches=matches,
)
def read_open_sesame(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    """Yield one example per line, with the name of the file as source."""
    for file in find_files(path, FILES):
        yield from parse_all(file, errors, non_blank_lines(file, errors), partial(_to_example, file.name))


def published_factors(source: str) -> dict[str, str]:
    """Return the factors of a published file, empty if it is not a cell of a factorial design."""
    condition = (AGREEMENT_CELLS | REFLEXIVE_CELLS).get(source)
    return {} if condition is None else {"condition": condition, "cell": source}


def _to_example(source: str, line: int, line_text: str) -> Example:
    text, *columns = line_text.split("\t")
    roles = ROLES_BY_N_COLUMNS.get(len(columns) + 1)
    if roles is None:
        problem = f"The line has {len(columns) + 1} tab-separated columns"
        raise ParseError("wrong column count", problem, "2 or 4 columns", "Keep all tabs, also at the end of a line")
    sentence = split_at_spaces(text.strip(), id=f"{source}-{line}")
    word_indices = [index for index, word in enumerate(sentence.words) for _ in BASIC_TOKEN.findall(word)]
    marked_words = {role: _parse_indices(cell, word_indices, role) for role, cell in zip(roles, columns, strict=True)}
    if len(marked_words["target"]) != 1 or not marked_words.get("antecedent", (0,)):
        problem = (
            f"There are {len(marked_words['target'])} targets, and the antecedent is {marked_words.get('antecedent')}"
        )
        expected = "one target and, with 4 columns, an antecedent"
        raise ParseError("missing annotation", problem, expected, "Fill it in")
    sentence = replace(sentence, marked_words=MappingProxyType(marked_words))
    return Example((sentence,), id=sentence.id, source=source, factors=MappingProxyType(published_factors(source)))


def _parse_indices(cell: str, word_indices: list[int], role: str) -> tuple[int, ...]:
    numbers = [parse_int(text) for text in cell.split()]
    if any(number is None or number >= len(word_indices) for number in numbers):
        problem, expected = f"The {role} is {cell.strip()!r}", f"numbers from 0 to {len(word_indices) - 1}"
        raise ParseError("index out of range", problem, expected, "Correct the index")
    return tuple(dict.fromkeys(word_indices[number] for number in numbers if number is not None))
