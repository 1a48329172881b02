"""CoarseWSD-20: twenty ambiguous nouns with few, clearly distinct senses, one directory per noun (loureiro2021).

The directory of a word has `train.data.txt` (index of the word, tab, tokenised sentence), `train.gold.txt` (sense
numbers), the same for test, and `classes_map.txt` (JSON: sense number to name). A path is the directory of a word, its
parent, or a `.data.txt` file. The word has its sense as annotation and is marked as `target`; the label is the sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from bertology.corpus.character_spans import sentence_with_target
from bertology.corpus.example import Example
from bertology.corpus.json_fields import as_object, as_text, parse_json
from bertology.corpus.read import find_files, reader
from bertology.corpus.text_files import (
    ParseError,
    ParseErrorHandler,
    lines,
    non_blank_lines,
    parse_all,
    read_text_file,
)
from bertology.errors import Refusal

FILES = r"(train|test)\.data\.txt"
CLASSES = "classes_map.txt"
EXAMPLE = """\
2	the red apple fell from the tree"""


def matches(path: Path) -> bool:
    """Whether the path is, or contains, a data file next to a class map."""
    files = [file for file in find_files(path, FILES) if file.name.endswith(".data.txt")]
    return bool(files) and (files[0].parent / CLASSES).is_file()


@reader(
    "coarsewsd",
    description="CoarseWSD-20: ambiguous nouns with coarse senses (the directory of one word, or of all)",
    example=EXAMPLE,
    matches=matches,
)
def read_coarsewsd(
    path: Path, errors: ParseErrorHandler, *, split: Literal["all", "train", "test"] = "all"
) -> Iterator[Example]:
    """Yield one example per line, with the source `word/split`."""
    for file in find_files(path, FILES):
        if split == "all" or file.name.startswith(split):
            yield from _read_file(file, errors)


def _read_file(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    gold = path.with_name(path.name.removesuffix(".data.txt") + ".gold.txt")
    for required in (gold, path.with_name(CLASSES)):
        if not required.is_file() or gold == path:
            raise Refusal(
                f"{path} has no {required.name} in its directory",
                "train.data.txt, train.gold.txt and classes_map.txt in the directory of the word",
                "Use the directory as distributed",
            )
    try:
        classes = as_object(parse_json(read_text_file(path.with_name(CLASSES), errors)), CLASSES)
    except ParseError as error:
        error.report(path.with_name(CLASSES), errors)
        return
    senses = dict(lines(gold, errors))
    source = f"{path.parent.name}/{path.name.partition('.')[0]}"
    units = ((number, (line, senses.get(number, ""))) for number, line in non_blank_lines(path, errors))
    yield from parse_all(path, errors, units, partial(_to_example, classes, source))


def _to_example(classes: dict[str, object], source: str, line: int, unit: tuple[str, str]) -> Example:
    index_text, tab, text = unit[0].partition("\t")
    if not tab:
        raise ParseError("wrong column count", "The line has no tab", "an index, a tab, a sentence", "Correct the line")
    sentence, sense = sentence_with_target(text, index_text, id=f"{source}-{line}"), unit[1].strip()
    if sense not in classes:
        expected = f"one of {', '.join(list(classes)[:12])}"
        raise ParseError("unknown sense", f"The sense is {sense!r}", expected, "Correct this line of the gold file")
    label = as_text(classes[sense], CLASSES)
    target = sentence.marked_words["target"]
    senses = tuple(label if index in target else None for index in range(len(sentence)))
    sentence = replace(sentence, senses=senses, label=label)
    return Example((sentence,), label=label, id=sentence.id, source=source)
