"""Word-in-Context: does a word have the same sense in two sentences (pilehvar2019)?

`train.data.txt` has one line per pair: the word, its part of speech (N or V), its indices in both sentences (`2-4`),
and the two tokenised sentences, separated by tabs; `train.gold.txt` has T (same sense) or F. A pair is two examples, so
that the model sees each sentence separately: their `document` is the pair, the word is marked as `target`, the label is
T or F.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from bertology.corpus.character_spans import sentence_with_target
from bertology.corpus.example import Example
from bertology.corpus.read import find_files, first_lines, reader
from bertology.corpus.text_files import ParseError, ParseErrorHandler, lines, non_blank_lines, parse_all
from bertology.errors import Refusal

FILES = r"(train|dev|test)\.data\.txt"
N_COLUMNS = 5
SAME, DIFFERENT = "T", "F"
EXAMPLE = """\
bank	N	4-1	We sat on the bank .	The bank is closed ."""


def matches(path: Path) -> bool:
    """Whether the path is, or contains, a data file with five columns."""
    files = [file for file in find_files(path, FILES) if file.name.endswith(".data.txt")]
    return bool(files) and any(line.count("\t") == N_COLUMNS - 1 for line in first_lines(files[0])[:1])


@reader(
    "wic",
    description="Word-in-Context: does a word have the same sense in two sentences? (a .data.txt file or a directory)",
    example=EXAMPLE,
    matches=matches,
)
def read_wic(
    path: Path, errors: ParseErrorHandler, *, split: Literal["all", "train", "dev", "test"] = "all"
) -> Iterator[Example]:
    """Yield two examples per line, with the split as source."""
    for file in find_files(path, FILES):
        if split == "all" or file.name.startswith(split):
            yield from _read_file(file, errors)


def _read_file(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    gold = path.with_name(path.name.removesuffix(".data.txt") + ".gold.txt")
    if not gold.is_file() or gold == path:
        raise Refusal(
            f"{path} has no {gold.name} in its directory",
            "NAME.data.txt and NAME.gold.txt in one directory",
            "Use both files as distributed",
        )
    labels = dict(lines(gold, errors))
    source = path.name.partition(".")[0]

    def parse_pair(line: int, text: str) -> tuple[Example, Example]:
        return _example_pair(f"{source}-{line}", source, text, labels.get(line, "").strip())

    for examples in parse_all(path, errors, non_blank_lines(path, errors), parse_pair):
        yield from examples


def _example_pair(pair: str, source: str, line: str, label: str) -> tuple[Example, Example]:
    columns = line.split("\t")
    if len(columns) != N_COLUMNS:
        problem, expected = f"The line has {len(columns)} columns", "word, part of speech, indices, and two sentences"
        raise ParseError("wrong column count", problem, expected, "Correct the line")
    if label not in (SAME, DIFFERENT):
        problem, expected = f"The label is {label!r}", f"{SAME} or {DIFFERENT}"
        raise ParseError("unknown label", problem, expected, "Correct this line of the gold file")
    indices = columns[2].strip().split("-")
    if len(indices) != 2:
        problem = f"The indices are {columns[2]!r}"
        raise ParseError("index out of range", problem, "two numbers as in 2-4", "Correct the indices")
    first, second = (
        _to_example(f"{pair}-{number}", pair, source, text, index, label)
        for number, (text, index) in enumerate(zip(columns[3:], indices, strict=True), start=1)
    )
    return first, second


def _to_example(id: str, pair: str, source: str, text: str, index_text: str, label: str) -> Example:
    sentence = replace(sentence_with_target(text, index_text, id=id), document=pair, label=label)
    return Example((sentence,), label=label, id=id, source=source)
