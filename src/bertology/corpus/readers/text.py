"""Plain text: one sentence a line, a blank line between documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.read import reader
from bertology.corpus.source import Problems, lines
from bertology.corpus.wording import Words, worded

EXAMPLE = """\
The first sentence of a document.
The second one.

Another document begins."""


@reader(
    "text",
    about="plain text, one sentence a line, a blank line between documents",
    example=EXAMPLE,
    suffixes=(".txt", ".text"),
)
def read_text(path: Path, problems: Problems, *, words: Words = "text") -> Iterator[Item]:
    """One item a line, its id the line's number; documents are numbered from 1."""
    document, fresh = 0, True
    for number, line in lines(path, problems):
        if not line.strip():
            fresh = True
            continue
        document += fresh
        fresh = False
        sentence = replace(worded(line.strip(), words, id=str(number)), document=str(document))
        yield Item((sentence,), id=sentence.id)
