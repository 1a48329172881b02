"""SentEval probing files: split (tr, va, te), label, tokenised sentence (conneau2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems, lines
from bertology.corpus.wording import Words, worded
from bertology.errors import unknown_name

SPLITS = {"tr": "train", "va": "validation", "te": "test"}
EXAMPLE = """\
tr	NN	The dog sleeps .
te	NNS	The dogs sleep ."""


def recognises(path: Path) -> bool:
    """Whether every line begins with tr, va or te and a tab."""
    head = first_lines(path)
    return bool(head) and all(line.count("\t") == 2 and line.partition("\t")[0] in SPLITS for line in head)


@reader(
    "senteval",
    about="SentEval probing tasks: split, label, tokenised sentence",
    example=EXAMPLE,
    recognises=recognises,
)
def read_senteval(
    path: Path,
    problems: Problems,
    *,
    split: Literal["all", "train", "validation", "test"] = "all",
    words: Words = "spaces",
) -> Iterator[Item]:
    """One item a line with its split as the source; `split` keeps only one."""
    if split not in ("all", *SPLITS.values()):
        raise unknown_name("split", split, ("all", *SPLITS.values()))
    filled = ((number, line) for number, line in lines(path, problems) if line.strip())
    for item in parsed(path, problems, filled, partial(_item, words)):
        if split in ("all", item.source):
            yield item


def _item(words: Words, line: int, text: str) -> Item:
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) != 3:
        raise Fault("wrong column count", f"The line has {len(cells)} columns", "split, label, sentence", "Correct it")
    split, label, written = cells
    if split not in SPLITS:
        raise Fault("unknown split", f"The split is {split!r}", "tr, va or te", "Correct the first column")
    if not label or not written:
        raise Fault("missing annotation", "The label or the sentence is empty", "both", "Fill it in")
    sentence = replace(worded(written, words, id=str(line)), label=label)
    return Item((sentence,), label=label, id=sentence.id, source=SPLITS[split])
