"""The lines of a file, and the one way a reader reports what is wrong with them.

A reader never decides whether a fault is fatal: it calls `Problems.found`, which refuses the file, or under
`--skip-bad` counts the fault and returns so that the reader goes on with the next item.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bertology.corpus.corpus import Skipped
from bertology.errors import Refusal

OPENERS: dict[str, Callable[[Path], BinaryIO]] = {
    ".gz": lambda path: cast(BinaryIO, gzip.open(path, "rb")),  # noqa: SIM115
    ".xz": lambda path: cast(BinaryIO, lzma.open(path, "rb")),  # noqa: SIM115
    ".bz2": lambda path: cast(BinaryIO, bz2.open(path, "rb")),  # noqa: SIM115
}


class Problems:
    """Collects or refuses the faults of one source."""

    def __init__(self, *, skip_bad: bool = False) -> None:
        self.skip_bad = skip_bad
        self.skipped: list[Skipped] = []

    def found(self, path: Path, line: int | None, reason: str, found: str, expected: str, remedy: str) -> None:
        """Refuse the input, or count the fault under `reason` where bad input is to be skipped."""
        where = str(path) if line is None else f"{path}, line {line}"
        if not self.skip_bad:
            advice = f"{remedy.rstrip('.')}, or leave such items out with --skip-bad, which counts them"
            raise Refusal(found, expected, advice, where=where)
        self.skipped.append(Skipped(reason, where))

    def note(self, path: Path, line: int | None, reason: str) -> None:
        """Count something that is always left out and is no fault (an empty token, a mention across sentences)."""
        self.skipped.append(Skipped(reason, str(path) if line is None else f"{path}, line {line}"))


def lines(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """Numbered lines (from 1) without their ends, decoded as UTF-8; `.gz`, `.xz` and `.bz2` are opened as such.

    A line that is not UTF-8 is a problem; skipped, it is left out and the numbers of the others stay true.
    """
    return ((number, line) for number, line in _decoded(path, problems) if line is not None)


def text_of(path: Path, problems: Problems) -> str:
    """The whole file as text; empty where a skipped problem leaves nothing to trust."""
    decoded = [line for _, line in _decoded(path, problems)]
    return "\n".join(line for line in decoded if line is not None) if None not in decoded else ""


def _decoded(path: Path, problems: Problems) -> Iterator[tuple[int, str | None]]:
    """Numbered lines, None for one that is not UTF-8."""
    for number, raw in _raw_lines(path):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            problems.found(
                path,
                number,
                "not UTF-8",
                f"The bytes {raw[error.start : error.start + 4]!r} are not UTF-8",
                "text in UTF-8",
                "Convert the file (for example `iconv -f latin1 -t utf-8`)",
            )
            text = None
        yield number, text


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with open_binary(path) as stream:
        try:
            yield from enumerate(stream, start=1)
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise Refusal(
                f"{path} cannot be read to its end ({error})",
                "a complete file",
                "Download or copy it again; check that its suffix tells how it is compressed",
            ) from error


def open_binary(path: Path) -> BinaryIO:
    """The bytes of a file, decompressed where its suffix says so."""
    try:
        return OPENERS.get(path.suffix, lambda p: p.open("rb"))(path)
    except OSError as error:
        raise Refusal(
            f"{path} cannot be read ({error.strerror or error})",
            "a readable file",
            "Check the path and its permissions",
        ) from error


def blocks(path: Path, problems: Problems) -> Iterator[list[tuple[int, str]]]:
    """Runs of non-blank lines: the sentences of the column formats.

    A run that holds a skipped line is left out whole, for half a sentence would be a wrong one.
    """
    block: list[tuple[int, str]] = []
    whole = True
    for number, line in _decoded(path, problems):
        if line is None:
            whole = False
        elif line.strip():
            block.append((number, line))
        else:
            if block and whole:
                yield block
            block, whole = [], True
    if block and whole:
        yield block
