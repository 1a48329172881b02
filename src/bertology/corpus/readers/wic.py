"""Words in context: does a word have the same sense in two sentences (pilehvar2019)?

`train.data.txt` has a line a pair: the word, its part of speech (N or V), its places in both sentences (`2-4`), the two
sentences, tokenised, with tabs between; `train.gold.txt` beside it has T (the same sense) or F. A pair is two items, so
that the model sees each sentence by itself: `document` is the pair, the mark `target` the word, the label T or F.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence
from bertology.corpus.sniff import files_below, first_lines
from bertology.corpus.source import Problems, lines
from bertology.corpus.whole_numbers import whole_number
from bertology.corpus.wording import from_spaces
from bertology.errors import Refusal, unknown_name

SPLITS = ("all", "train", "dev", "test")
DATA = r"(train|dev|test)\.data\.txt"
COLUMNS = 5
SAME, OTHER = "T", "F"
EXAMPLE = """\
bank	N	4-1	We sat on the bank .	The bank is closed ."""


def recognises(path: Path) -> bool:
    """Whether the path is such a data file, or a folder that holds one, with five columns."""
    files = files_below(path, DATA) if path.is_dir() else [path] if path.name.endswith(".data.txt") else []
    return bool(files) and any(line.count("\t") == COLUMNS - 1 for line in first_lines(files[0])[:1])


@reader(
    "wic",
    about="WiC: a word in two sentences, with the same sense or not (.data.txt with .gold.txt beside it, or a folder)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_wic(
    path: Path, problems: Problems, *, split: Literal["all", "train", "dev", "test"] = "all"
) -> Iterator[Item]:
    """Two items a line; the source is the split."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    for file in files_below(path, DATA) if path.is_dir() else [path]:
        if split == "all" or file.name.startswith(split):
            yield from _file(file, problems)


def _file(path: Path, problems: Problems) -> Iterator[Item]:
    gold = path.with_name(path.name.removesuffix(".data.txt") + ".gold.txt")
    if not gold.is_file() or gold == path:
        raise Refusal(
            f"{path} has no {gold.name} beside it",
            "NAME.data.txt and NAME.gold.txt in one folder",
            "Take both files as they are distributed",
        )
    labels = dict(lines(gold, problems))
    source = path.name.partition(".")[0]

    def pair(line: int, text: str) -> tuple[Item, Item]:
        return _pair(f"{source}-{line}", source, text, labels.get(line, "").strip())

    filled = ((number, line) for number, line in lines(path, problems) if line.strip())
    for items in parsed(path, problems, filled, pair):
        yield from items


def _pair(name: str, source: str, line: str, label: str) -> tuple[Item, Item]:
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        raise Fault(
            "wrong column count",
            f"The line has {len(columns)} columns",
            "word, part of speech, places, and two sentences",
            "Correct the line",
        )
    if label not in (SAME, OTHER):
        raise Fault(
            "unknown label", f"The label is {label!r}", f"{SAME} or {OTHER}", "Correct this line of the gold file"
        )
    places = columns[2].strip().split("-")
    if len(places) != 2:
        raise Fault("index out of range", f"The places are {columns[2]!r}", "two numbers as in 2-4", "Correct them")
    first, second = (
        _target(f"{name}-{number}", name, text.strip(), place, label)
        for number, (text, place) in enumerate(zip(columns[3:], places, strict=True), 1)
    )
    return Item((first,), label=label, id=first.id, source=source), Item(
        (second,), label=label, id=second.id, source=source
    )


def _target(id: str, pair: str, text: str, place: str, label: str) -> Sentence:
    made = from_spaces(text, id=id)
    target = whole_number(place.strip())
    if target is None or target >= len(made):
        expected = f"a number from 0 to {len(made) - 1}" if len(made) else "a sentence with the word"
        raise Fault("index out of range", f"The place of the word is {place!r}", expected, "Correct the line")
    return replace(made, document=pair, label=label, marks=MappingProxyType({"target": (target,)}))
