"""WinoBias: sentences in which brackets mark a pronoun and the occupation it refers to (zhao2018).

`1 [The developer] argued with the designer because [she] was late.` Everything in brackets is one cluster; the marks
`pronoun` and `antecedent` give the words of each. The number before the sentence is its id; brackets and number are
no part of the text. A folder is read file after file; each item's source is its file's name, which says whether it is
pro- or anti-stereotyped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.characters import covering
from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Span, from_text
from bertology.corpus.sniff import files_below, first_lines
from bertology.corpus.source import Problems, lines

FILES = r".*stereotyped.*\.txt(\.\w+)?"
LINE = re.compile(r"(?P<id>\d+)\s+(?P<text>.*\S)\s*")
PRONOUNS = frozenset(
    {"he", "him", "his", "himself", "she", "her", "hers", "herself", "they", "them", "their", "theirs", "themselves"}
)
EXAMPLE = """\
1 [The developer] argued with the designer because [she] was late.
2 The developer argued with [the designer] because [he] was late."""


def recognises(path: Path) -> bool:
    """Whether every line is numbered and holds at least two brackets."""
    first = next(iter(files_below(path, FILES)), path) if path.is_dir() else path
    head = first_lines(first)
    return bool(head) and all(LINE.fullmatch(line) and line.count("[") >= 2 and "]" in line for line in head)


@reader(
    "winobias",
    about="WinoBias: a pronoun and its antecedent in brackets (a file or a folder)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_winobias(path: Path, problems: Problems) -> Iterator[Item]:
    """One item a line, its source the file's name."""
    for file in files_below(path, FILES) if path.is_dir() else [path]:
        filled = ((number, line) for number, line in lines(file, problems) if line.strip())
        yield from parsed(file, problems, filled, partial(_item, file.name))


def _item(source: str, line: int, written: str) -> Item:
    match = LINE.fullmatch(written)
    if match is None:
        raise Fault("no number", "The line does not begin with a number", "a number, a space, a sentence", "Add it")
    text, stretches = _unbracketed(match["text"])
    sentence = from_text(text, id=match["id"])
    spans = [covering(sentence, start, end, "0") for start, end in stretches]
    pronouns = [span for span in spans if sentence.words[span.start].lower() in PRONOUNS and span.end - span.start == 1]
    others = [span for span in spans if span not in pronouns]
    if not pronouns or len(others) != 1:
        found = f"The brackets hold {len(pronouns)} pronouns and {len(others)} other phrases"
        raise Fault("wrong brackets", found, "one antecedent and at least one pronoun", "Correct the brackets")
    marks = {"pronoun": _words(pronouns), "antecedent": _words(others)}
    sentence = replace(sentence, mentions=tuple(spans), marks=MappingProxyType(marks))
    return Item((sentence,), id=match["id"], source=source)


def _words(spans: list[Span]) -> tuple[int, ...]:
    return tuple(word for span in spans for word in range(span.start, span.end))


def _unbracketed(written: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without brackets and the stretches of it that stood in them."""
    text: list[str] = []
    stretches: list[tuple[int, int]] = []
    start: int | None = None
    for character in written:
        if character == "[" and start is None:
            start = len(text)
        elif character == "]" and start is not None:
            stretches.append((start, len(text)))
            start = None
        elif character in "[]":
            raise Fault("wrong brackets", "A bracket is nested or closes none", "[ and ] in turn", "Correct them")
        else:
            text.append(character)
    if start is not None:
        raise Fault("wrong brackets", "A bracket is not closed", "] for every [", "Close it")
    return "".join(text), stretches
