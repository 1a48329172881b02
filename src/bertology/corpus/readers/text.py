"""Plain text: one sentence per line, blank lines between documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.read import reader
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.text_files import ParseErrorHandler, lines

EXAMPLE = """\
The first sentence of a document.
The second one.

Another document begins."""


@reader(
    "text",
    description="plain text: one sentence per line, blank lines between documents",
    example=EXAMPLE,
    suffixes=(".txt", ".text"),
)
def read_text(path: Path, errors: ParseErrorHandler, *, words: WordSplitting = "text") -> Iterator[Example]:
    """Yield one example per line, with the line number as id; documents are numbered from 1."""
    document, is_new_document = 0, True
    for number, line in lines(path, errors):
        if not line.strip():
            is_new_document = True
            continue
        document += is_new_document
        is_new_document = False
        sentence = replace(split_words(line.strip(), words, id=str(number)), document=str(document))
        yield Example((sentence,), id=sentence.id)
