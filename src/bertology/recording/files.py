"""Files that are there whole or not at all, and what goes wrong with them told to the user."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bertology.errors import Refusal

DIGITS = 32
READ_AT_ONCE = 2**20
DAY = 24 * 3600
NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

_PARTIAL = re.compile(r"\..*\.([0-9a-f]{8})-(\d+)\.partial")


def digest_of(content: bytes) -> str:
    """32 hexadecimal digits that tell these bytes from any others."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def digest_of_file(file: Path) -> str:
    """The digest of a file's bytes, read in pieces."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(READ_AT_ONCE):
            found.update(block)
    return found.hexdigest()[:DIGITS]


@contextmanager
def writing(folder: Path, name: str) -> Generator[tuple[BinaryIO, Path]]:
    """A stream into a hidden file in `folder` for the caller to rename; it is removed if anything goes wrong.

    A failure to write is the user's to mend, and is refused with what to do.
    """
    partial = folder / f".{name}.{_this_machine()}-{os.getpid()}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as stream:
                yield stream, partial
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def finish(stream: BinaryIO, partial: Path, target: Path) -> None:
    """Put what was written in its place, so that a crash of the machine leaves no half of it."""
    stream.flush()
    os.fsync(stream.fileno())
    partial.replace(target)


def write_first(target: Path, content: bytes) -> None:
    """Write a file unless it exists: of two processes at once, one writes it and the other leaves it."""
    with writing(target.parent, target.name) as (stream, partial):
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
        try:
            os.link(partial, target)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            partial.replace(target)


def remove_abandoned(folder: Path) -> None:
    """Remove partial files whose process on this machine is gone, or that nobody has touched for a day."""
    for file in folder.iterdir():
        name = _PARTIAL.fullmatch(file.name)
        if name is None:
            continue
        with suppress(OSError):  # another process may be tidying as well, or the folder be read-only
            ours = name[1] == _this_machine()
            if (ours and not _is_running(int(name[2]))) or time.time() - file.stat().st_mtime > DAY:
                file.unlink()


def _this_machine() -> str:
    return digest_of(socket.gethostname().encode())[:8]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _cannot_write(folder: Path, error: OSError) -> Refusal:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    return Refusal(
        f"The recording cannot be written to {folder}: {error.strerror or error}",
        "more free space" if full else "a folder that can be written to",
        "Free some space and run the same command again: what is finished stays and is not repeated"
        if full
        else "Choose another folder with -o, or correct its permissions",
    )
