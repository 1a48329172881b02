"""Local copies of files in an object store: named by the digest of their bytes, checked, and bounded in number.

A shard of a remote store is downloaded once and then memory-mapped like a local one; what this machine uploads is kept
here too. The copies used longest ago are deleted when there are more than `$BERTOLOGY_DOWNLOAD_BYTES`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bertology.atomic_files import digest_file, is_partial, partial_file, remove_stale_partials
from bertology.checked_files import DamagedFileError
from bertology.errors import Refusal
from bertology.store_paths import RemotePath, StorePath, download_folder

DEFAULT_BYTES = 20 * 10**9


def checked_copy(file: StorePath, digest: str) -> Path:
    """A local file with the content of `file`: the file itself, or its copy, downloaded if there is none.

    `DamagedFileError` if its bytes do not have this digest.
    """
    if isinstance(file, Path):
        if digest_file(file) != digest:
            raise DamagedFileError(f"{file} is damaged: its digest does not match")
        return file
    copy = _copy_path(digest, file.suffix)
    if copy.is_file() and digest_file(copy) == digest:
        with suppress(OSError):
            os.utime(copy)
        return copy
    with partial_file(copy.parent, copy.name) as (_, partial):
        try:
            file.download(partial)
        except FileNotFoundError as error:
            raise DamagedFileError(f"{file} is missing") from error
        if digest_file(partial) != digest:
            raise DamagedFileError(f"{file} is damaged: its digest does not match")
        partial.replace(copy)
    _remove_oldest(copy)
    return copy


def keep_copy(partial: Path, target: StorePath, digest: str) -> None:
    """Keep a temporary file that was uploaded to `target` as the local copy of it."""
    if isinstance(target, RemotePath):
        copy = _copy_path(digest, target.suffix)
        partial.replace(copy)
        _remove_oldest(copy)


def _copy_path(digest: str, suffix: str) -> Path:
    return download_folder() / f"{digest}{suffix}"


def _remove_oldest(newest: Path) -> None:
    """Delete the copies used longest ago until the rest fits; the newest stays, and open ones stay readable."""
    remove_stale_partials(newest.parent)
    copies: list[tuple[float, int, Path]] = []
    for file in newest.parent.iterdir():
        with suppress(OSError):  # another process may have deleted it
            if file != newest and not is_partial(file):
                copies.append((file.stat().st_mtime, file.stat().st_size, file))
    excess = newest.stat().st_size + sum(size for _, size, _ in copies) - _maximum()
    for _, size, file in sorted(copies):
        if excess <= 0:
            return
        with suppress(OSError):
            file.unlink()
            excess -= size


def _maximum() -> int:
    text = os.environ.get("BERTOLOGY_DOWNLOAD_BYTES", "")
    if text and not (text.isascii() and text.isdecimal()):
        raise Refusal(f"BERTOLOGY_DOWNLOAD_BYTES is {text[:40]!r}", "a number of bytes", "Correct or unset it")
    return int(text) if text else DEFAULT_BYTES
