"""SentEval probing data: split (tr, va, te), label, tokenised sentence (conneau2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.text_files import ParseError, ParseErrorHandler, non_blank_lines, parse_all

SPLITS = {"tr": "train", "va": "validation", "te": "test"}
EXAMPLE = """\
tr	NN	The dog sleeps .
te	NNS	The dogs sleep ."""


def matches(path: Path) -> bool:
    """Whether every line has three columns, the first of which is tr, va or te."""
    sample_lines = first_lines(path)
    return bool(sample_lines) and all(
        line.count("\t") == 2 and line.partition("\t")[0] in SPLITS for line in sample_lines
    )


@reader(
    "senteval",
    description="SentEval probing tasks: split, label, tokenised sentence",
    example=EXAMPLE,
    matches=matches,
)
def read_senteval(
    path: Path,
    errors: ParseErrorHandler,
    *,
    split: Literal["all", "train", "validation", "test"] = "all",
    words: WordSplitting = "spaces",
) -> Iterator[Example]:
    """Yield one example per line of a split, or of all, with the split as source."""
    for example in parse_all(path, errors, non_blank_lines(path, errors), partial(_to_example, words)):
        if split in ("all", example.source):
            yield example


def _to_example(word_splitting: WordSplitting, line: int, line_text: str) -> Example:
    cells = [cell.strip() for cell in line_text.split("\t")]
    if len(cells) != 3:
        problem = f"The line has {len(cells)} columns"
        raise ParseError("wrong column count", problem, "split, label, sentence", "Correct the line")
    split, label, text = cells
    if split not in SPLITS:
        raise ParseError("unknown split", f"The split is {split!r}", "tr, va or te", "Correct the first column")
    if not label or not text:
        raise ParseError("missing annotation", "The label or the sentence is empty", "both", "Fill it in")
    sentence = replace(split_words(text, word_splitting, id=str(line)), label=label)
    return Example((sentence,), label=label, id=sentence.id, source=SPLITS[split])
