"""BLiMP: minimal pairs of an acceptable and an unacceptable sentence, one paradigm a file (warstadt2020).

The item's source is `field/linguistics_term/UID` (`syntax/island_effects/wh_island`), its id `UID-pairID`. A folder is
read file after file. The published set holds pairs whose sentences are the same; they are counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.json_values import at, parse_json, text_at
from bertology.corpus.read import reader
from bertology.corpus.sniff import files_below, first_lines
from bertology.corpus.source import Problems, lines
from bertology.corpus.wording import Words, worded

EXAMPLE = """\
{"sentence_good": "Dogs bark.", "sentence_bad": "Dogs barks.", "field": "morphology", \
"linguistics_term": "subject_verb_agreement", "UID": "agreement_1", "pairID": "0"}"""


def recognises(path: Path) -> bool:
    """Whether a file, or a folder's first one, holds BLiMP's two sentences."""
    first = next(iter(files_below(path, r".*\.jsonl")), path) if path.is_dir() else path
    return '"sentence_good"' in "".join(first_lines(first)[:1])


@reader(
    "blimp",
    about="BLiMP minimal pairs, JSON lines (a file or a folder of paradigms)",
    example=EXAMPLE,
    recognises=recognises,
)
def read_blimp(path: Path, problems: Problems, *, words: Words = "text") -> Iterator[Item]:
    """One item a pair."""
    for file in files_below(path, r".*\.jsonl") if path.is_dir() else [path]:
        filled = ((number, line) for number, line in lines(file, problems) if line.strip())
        for item in parsed(file, problems, filled, partial(_item, file, problems, words)):
            if item.parts[0] != item.parts[1]:
                yield item


def _item(path: Path, problems: Problems, words: Words, line: int, written: str) -> Item:
    value = parse_json(written, line)
    good, bad = text_at(value, "sentence_good", ""), text_at(value, "sentence_bad", "")
    if good == bad:
        problems.note(path, line, "pair without contrast")
    paradigm = text_at(value, "UID", "")
    source = f"{text_at(value, 'field', '')}/{text_at(value, 'linguistics_term', '')}/{paradigm}"
    number = at(value, "pairID", "")
    if not isinstance(number, str | int):
        raise Fault("wrong value", f"pairID is {str(number)[:40]}", "text or a number", "Correct it")
    name = f"{paradigm}-{number}".encode("utf-8", "replace").decode()
    return Item((worded(good, words), worded(bad, words)), "minimal_pair", id=name, source=source)
