"""CoarseWSD-20: twenty ambiguous nouns, a folder each, with few and clear senses (loureiro2021).

A word's folder holds `train.data.txt` (index of the word, tab, tokenised sentence), `train.gold.txt` (number of the
sense), the same for test, and `classes_map.txt` (JSON: number to name of the sense). Given a word's folder, the folder
above it, or one `.data.txt` file. The target has its sense and the mark `target`; the label is the sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.json_values import keyed, parse_json, written
from bertology.corpus.read import reader
from bertology.corpus.sniff import files_below
from bertology.corpus.source import Problems, lines, text_of
from bertology.corpus.whole_numbers import whole_number
from bertology.corpus.wording import from_spaces
from bertology.errors import Refusal, unknown_name

DATA = r"(train|test)\.data\.txt"
CLASSES = "classes_map.txt"
EXAMPLE = """\
2	the red apple fell from the tree"""


def recognises(path: Path) -> bool:
    """Whether the path is such a data file or holds one, with the map of the classes beside it."""
    files = files_below(path, DATA) if path.is_dir() else [path] if path.name.endswith(".data.txt") else []
    return bool(files) and (files[0].parent / CLASSES).is_file()


@reader(
    "coarsewsd",
    about="CoarseWSD-20: ambiguous nouns with coarse senses (a word's folder, or all)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_coarsewsd(path: Path, problems: Problems, *, split: Literal["all", "train", "test"] = "all") -> Iterator[Item]:
    """One item a line; the source is `word/split`."""
    if split not in ("all", "train", "test"):
        raise unknown_name("split", split, ("all", "train", "test"))
    for file in files_below(path, DATA) if path.is_dir() else [path]:
        if split == "all" or file.name.startswith(split):
            yield from _file(file, problems)


def _file(path: Path, problems: Problems) -> Iterator[Item]:
    gold = path.with_name(path.name.removesuffix(".data.txt") + ".gold.txt")
    for needed in (gold, path.with_name(CLASSES)):
        if not needed.is_file() or gold == path:
            raise Refusal(
                f"{path} has no {needed.name} beside it",
                "train.data.txt, train.gold.txt and classes_map.txt in the word's folder",
                "Take the folder as it is distributed",
            )
    try:
        classes = keyed(parse_json(text_of(path.with_name(CLASSES), problems)), CLASSES)
    except Fault as fault:
        fault.report(path.with_name(CLASSES), problems)
        return
    senses = dict(lines(gold, problems))
    source = f"{path.parent.name}/{path.name.partition('.')[0]}"
    filled = ((number, line) for number, line in lines(path, problems) if line.strip())
    units = ((number, (line, senses.get(number, ""))) for number, line in filled)
    yield from parsed(path, problems, units, partial(_item, classes, source))


def _item(classes: dict[str, object], source: str, line: int, unit: tuple[str, str]) -> Item:
    place, tab, text = unit[0].partition("\t")
    if not tab:
        raise Fault("wrong column count", "The line has no tab", "an index, a tab, a sentence", "Correct the line")
    sentence = from_spaces(text.strip(), id=f"{source}-{line}")
    target, sense = whole_number(place.strip()), unit[1].strip()
    if target is None or target >= len(sentence):
        expected = f"a number from 0 to {len(sentence) - 1}"
        raise Fault("index out of range", f"The index of the word is {place!r}", expected, "Correct the index")
    if sense not in classes:
        expected = f"one of {', '.join(list(classes)[:12])}"
        raise Fault("unknown sense", f"The sense is {sense!r}", expected, "Correct this line of the gold file")
    name = written(classes[sense], CLASSES)
    senses = tuple(name if index == target else None for index in range(len(sentence)))
    marks = MappingProxyType({"target": (target,)})
    return Item((replace(sentence, senses=senses, marks=marks, label=name),), label=name, id=sentence.id, source=source)
