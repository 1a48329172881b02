"""The beginning of a file, for deciding which format it is in; never a fault: what cannot be read is empty."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from bertology.corpus.source import Problems, lines
from bertology.errors import Refusal

COUNT = 40
LONGEST = 100_000
PACKED = {".gz", ".xz", ".bz2"}


def first_lines(path: Path) -> tuple[str, ...]:
    """The first non-blank lines of a file, as many as 40; none of a folder or of what is not text."""
    if not path.is_file():
        return ()
    status = path.stat()
    return _first_lines(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _first_lines(path: Path, modified: int, size: int) -> tuple[str, ...]:
    found: list[str] = []
    taken = 0
    try:
        for _, line in lines(path, Problems()):
            if line.strip():
                found.append(line[:LONGEST])
            taken += len(line)
            if len(found) == COUNT or taken > LONGEST:
                break
    except Refusal:
        return ()
    return tuple(found)


def beginning(path: Path) -> str:
    """The first non-blank lines as one text."""
    return "\n".join(first_lines(path))


def suffix(path: Path) -> str:
    """The suffix that tells the format, without that of compression: `.txt` of `a.txt.xz`."""
    kept = [part for part in path.suffixes if part not in PACKED]
    return kept[-1].lower() if kept else ""


def files_below(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder and the folders in it whose name matches the pattern whole, in order of their paths."""
    wanted = re.compile(pattern)
    return sorted(path for path in folder.rglob("*") if path.is_file() and wanted.fullmatch(path.name))
