"""Open Sesame's stimuli: the word that must agree, its antecedent and what distracts from it (lin2019).

`agr.N` and `refl.N`: sentence, index of the agreeing word, of the antecedent's words, of the distractors' words (may
be empty); `aux.*` and `sbjn*`: sentence, index of the target. The marks are `target`, `antecedent`, `distractor`. The
files count words as BERT's first step splits them: in `fish's` are three, so an index is carried over to the word
between blanks in which it lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sniff import files_below
from bertology.corpus.source import Problems, lines
from bertology.corpus.whole_numbers import whole_number
from bertology.corpus.wording import from_spaces

NAME = r"(agr|refl)\.\d+|(aux|sbjn|sbjn-join)\.(train|test|gen\w*)"
UNIT = re.compile(r"\w+|[^\w\s]")
ROLES = {2: ("target",), 4: ("target", "antecedent", "distractor")}
EXAMPLE = """\
the cat near your birds does cry	5	0 1	3 4"""


def recognises(path: Path) -> bool:
    """Whether a file has one of the set's names, or a folder holds such files."""
    return bool(files_below(path, NAME)) if path.is_dir() else re.fullmatch(NAME, path.name) is not None


@reader(
    "opensesame",
    about="Open Sesame stimuli: agreement, reflexives, auxiliaries, subjects (a file or their folder)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_opensesame(path: Path, problems: Problems) -> Iterator[Item]:
    """One item a line, its source the file's name."""
    for file in files_below(path, NAME) if path.is_dir() else [path]:
        filled = ((number, line) for number, line in lines(file, problems) if line.strip())
        yield from parsed(file, problems, filled, partial(_item, file.name))


def _item(source: str, line: int, written: str) -> Item:
    text, *columns = written.split("\t")
    roles = ROLES.get(len(columns) + 1)
    if roles is None:
        found = f"The line has {len(columns) + 1} tab-separated columns"
        raise Fault("wrong column count", found, "2 or 4 columns", "Keep the tabs, also at the end of a line")
    sentence = from_spaces(text.strip(), id=f"{source}-{line}")
    places = _places(sentence.words)
    marks = {role: _indices(cell, places, role) for role, cell in zip(roles, columns, strict=True)}
    if len(marks["target"]) != 1 or not marks.get("antecedent", (0,)):
        found = f"There are {len(marks['target'])} targets and the antecedent is {marks.get('antecedent')}"
        raise Fault(
            "missing annotation", found, "one target, and an antecedent where there are 4 columns", "Fill it in"
        )
    sentence = replace(sentence, marks=MappingProxyType(marks))
    return Item((sentence,), id=sentence.id, source=source)


def _places(words: tuple[str, ...]) -> list[int]:
    """The word in which each unit that the files count lies."""
    return [index for index, word in enumerate(words) for _ in UNIT.findall(word)]


def _indices(cell: str, places: list[int], role: str) -> tuple[int, ...]:
    numbers = [whole_number(text) for text in cell.split()]
    if any(number is None or number >= len(places) for number in numbers):
        found = f"The {role} is {cell.strip()!r}"
        raise Fault("index out of range", found, f"numbers from 0 to {len(places) - 1}", "Correct the index")
    return tuple(dict.fromkeys(places[number] for number in numbers if number is not None))
