"""Lines of text files, and how readers report malformed input.

A reader raises `ParseError` for an example it cannot read and never decides whether the error is fatal:
`ParseErrorHandler` refuses the file or, with `--skip-malformed`, counts the example as skipped.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from bertology.corpus.example import SkippedExample
from bertology.errors import Refusal
from bertology.input_files import open_plain

OPENERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda stream: cast(BinaryIO, gzip.open(stream, "rb")),  # noqa: SIM115  # closed by the caller
    ".xz": lambda stream: cast(BinaryIO, lzma.open(stream, "rb")),  # noqa: SIM115  # closed by the caller
    ".bz2": lambda stream: cast(BinaryIO, bz2.open(stream, "rb")),  # noqa: SIM115  # closed by the caller
}
MAX_LINE_BYTES = 10_000_000
"""A line of a corpus is a word, a sentence or a document; formats of one JSON value are read whole."""
MAX_FILE_BYTES = 2**30
MAX_DIGITS = 9
NumberedLines = list[tuple[int, str]]
LineT = TypeVar("LineT", int, None)
UnitT = TypeVar("UnitT")
ParsedT = TypeVar("ParsedT")


class ParseErrorHandler:
    """Refuses the malformed input of one source, or collects it."""

    def __init__(self, *, skip_malformed: bool = False) -> None:
        self.skip_malformed = skip_malformed
        self.skipped: list[SkippedExample] = []

    def handle(self, path: Path, line: int | None, reason: str, problem: str, expected: str, remedy: str) -> None:
        """Refuse the input or, if malformed input is skipped, count it under `reason`."""
        if not self.skip_malformed:
            advice = f"{remedy.rstrip('.')}, or skip and count malformed examples with --skip-malformed"
            raise Refusal(problem, expected, advice, location=_location(path, line))
        self.count(path, line, reason)

    def count(self, path: Path, line: int | None, reason: str) -> None:
        """Count well-formed input that the package ignores or changes, such as empty tokens."""
        self.skipped.append(SkippedExample(reason, _location(path, line)))


class ParseError(Exception):
    """An example that cannot be read.

    `reason` is the short text it is counted under, `line` its line number, if known.
    """

    def __init__(self, reason: str, problem: str, expected: str, remedy: str, *, line: int | None = None) -> None:
        super().__init__(reason, problem, expected, remedy, line)
        self.reason = reason
        self.problem = problem
        self.expected = expected
        self.remedy = remedy
        self.line = line

    def report(self, path: Path, errors: ParseErrorHandler, line: int | None = None) -> None:
        """Pass the error to the handler; `line` is used if the error has no line number."""
        errors.handle(
            path, line if self.line is None else self.line, self.reason, self.problem, self.expected, self.remedy
        )


def parse_all(
    path: Path,
    errors: ParseErrorHandler,
    units: Iterable[tuple[LineT, UnitT]],
    parse: Callable[[LineT, UnitT], ParsedT],
) -> Iterator[ParsedT]:
    """Yield what `parse` returns for each line number and unit; report malformed units and go on with the next."""
    for line, unit in units:
        try:
            parsed = parse(line, unit)
        except ParseError as error:
            error.report(path, errors, line)
            continue
        yield parsed


def parse_int(text: str) -> int | None:
    """Return the number that 1 to 9 ASCII digits spell, else None.

    Stricter than `int`, which accepts white space, underscores and digits of other scripts.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def lines(path: Path, errors: ParseErrorHandler) -> Iterator[tuple[int, str]]:
    """Yield numbered lines (from 1) without line ends, decoded as UTF-8 and decompressed by suffix (.gz, .xz, .bz2).

    A line that is not UTF-8 is malformed; if it is skipped, the numbers of the other lines do not change.
    """
    return ((number, line) for number, line in _decode_lines(path, errors) if line is not None)


def non_blank_lines(path: Path, errors: ParseErrorHandler) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are not blank."""
    return ((number, line) for number, line in lines(path, errors) if line.strip())


def line_groups(path: Path, errors: ParseErrorHandler) -> Iterator[NumberedLines]:
    """Yield runs of non-blank lines: the sentences of column formats.

    A run with a skipped line is skipped entirely, because the rest would be a wrong sentence.
    """
    return group_lines(_decode_lines(path, errors))


def group_lines(numbered_lines: Iterable[tuple[int, str | None]]) -> Iterator[NumberedLines]:
    """Yield runs of non-blank lines, without runs that contain a skipped line (None)."""
    group: NumberedLines = []
    is_complete = True
    for number, line in numbered_lines:
        if line is None:
            is_complete = False
        elif line.strip():
            group.append((number, line))
        else:
            if group and is_complete:
                yield group
            group, is_complete = [], True
    if group and is_complete:
        yield group


def read_text_file(path: Path, errors: ParseErrorHandler) -> str:
    """Read a file as one text; the text is empty if a line was skipped as malformed."""
    decoded = [line for _, line in _decode_lines(path, errors, MAX_FILE_BYTES)]
    return "\n".join(line for line in decoded if line is not None) if None not in decoded else ""


def _decode_lines(
    path: Path, errors: ParseErrorHandler, max_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, str | None]]:
    """Yield numbered lines, None for a line that is not UTF-8."""
    for number, raw in _raw_lines(path, max_bytes):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            errors.handle(
                path,
                number,
                "not UTF-8",
                f"The bytes {raw[error.start : error.start + 4]!r} are not UTF-8",
                "text in UTF-8",
                "Convert the file (for example `iconv -f latin1 -t utf-8`)",
            )
            text = None
        yield number, text


def _raw_lines(path: Path, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines of at most `max_bytes`, decompressed by suffix."""
    with open_plain(path) as file, OPENERS.get(path.suffix, lambda stream: stream)(file) as stream:
        number = 0
        try:
            while line := stream.readline(max_bytes + 1):
                number += 1
                if len(line) > max_bytes:
                    raise Refusal(
                        f"The line has more than {max_bytes:,} bytes",
                        "lines of text",
                        "Check that the file is a corpus, or split it",
                        location=_location(path, number),
                    )
                yield number, line
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise Refusal(
                f"{path} cannot be read to its end ({error})",
                "a complete file",
                "Download or copy the file again; check that its suffix matches its compression",
            ) from error


def _location(path: Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}, line {line}"
