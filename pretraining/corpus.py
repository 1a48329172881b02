"""The training text: one sentence per line, a blank line between documents."""

import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

Document = tuple[str, ...]


def open_text(path: Path) -> TextIO:
    """The text of a plain or xz-compressed file, as UTF-8."""
    if path.suffix == ".xz":
        return io.TextIOWrapper(lzma.open(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def read_documents(path: Path) -> Iterator[Document]:
    """Documents in file order; a document has at least one sentence and no empty ones."""
    sentences: list[str] = []
    with open_text(path) as lines:
        for line in lines:
            if sentence := line.strip():
                sentences.append(sentence)
            elif sentences:
                yield tuple(sentences)
                sentences = []
    if sentences:
        yield tuple(sentences)
