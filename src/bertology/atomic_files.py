"""Atomic file writing: a file appears complete or not at all; failures are told with a remedy (`MachineError`)."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bertology.errors import Refusal
from bertology.machine_errors import DISK_FULL, StorageError, disk_full
from bertology.store_paths import RemotePath, StorePath, download_folder

DIGEST_LENGTH = 32
CHUNK_BYTES = 2**20
STALE_SECONDS = 24 * 3600
NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

_PARTIAL = re.compile(r"\..*\.([0-9a-f]{8})-(\d+)\.partial")


def digest_bytes(content: bytes) -> str:
    """SHA-256 of some bytes, cut to 32 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]


def digest_file(file: Path) -> str:
    """`digest_bytes` of a file's content, read in chunks."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()[:DIGEST_LENGTH]


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written; called before anything is computed."""
    if not path.parent.is_dir():
        raise Refusal(
            f"{path} cannot be written: there is no folder {path.parent}",
            "a file in an existing folder",
            "Create the folder, or choose another one",
        )
    writable = os.access(path.parent, os.W_OK | os.X_OK)
    if not writable or path.is_dir():
        reason = "it is a folder" if writable else f"no write permission for the folder {path.parent}"
        raise Refusal(f"{path} cannot be written: {reason}", "a file in a writable folder", "Choose another path")


@contextmanager
def partial_file(folder: StorePath, name: str) -> Generator[tuple[BinaryIO, Path]]:
    """Open a hidden temporary file in `folder`, for the caller to `publish`; removed if it was not renamed.

    The name holds machine and process, so that `remove_stale_partials` can recognise abandoned files. What is to be
    uploaded lies in the folder of downloads meanwhile.
    """
    folder = download_folder() if isinstance(folder, RemotePath) else folder
    partial = folder / f".{name}.{_machine_id()}-{os.getpid()}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as stream:
                yield stream, partial
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise write_error(folder, error) from error


def publish(partial: Path, path: StorePath) -> None:
    """Let a complete temporary file appear under its name: by renaming it, or by uploading it."""
    if isinstance(path, RemotePath):
        path.upload(partial)
    else:
        partial.replace(path)


@contextmanager
def atomic_writer(path: StorePath) -> Generator[BinaryIO]:
    """A stream whose content replaces `path` when the block ends without an error; missing folders are created."""
    with partial_file(path.parent, path.name) as (stream, partial):
        yield stream
        _sync(stream)
        publish(partial, path)


@contextmanager
def atomic_directory(folder: Path) -> Generator[Path]:
    """A hidden directory that replaces `folder` when the block ends without an error."""
    partial = folder.with_name(f".{folder.name}.{_machine_id()}-{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        try:
            yield partial
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise write_error(folder.parent, error) from error


def write_atomically(path: Path, content: bytes) -> Path:
    """Write a file into an existing folder; the previous content stays until the new one is complete."""
    check_writable(path)
    with atomic_writer(path) as stream:
        stream.write(content)
    return path


def write_if_absent(path: StorePath, content: bytes) -> None:
    """Write a file unless it exists: if two processes try, the first one wins."""
    if isinstance(path, RemotePath):
        with suppress(FileExistsError):
            path.create_bytes(content)
        return
    with partial_file(path.parent, path.name) as (stream, partial):
        stream.write(content)
        _sync(stream)
        try:
            os.link(partial, path)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            partial.replace(path)


def remove_stale_partials(folder: Path) -> None:
    """Remove temporary files of processes that no longer run on this machine, and those unchanged for a day."""
    for file in folder.iterdir():
        name = _PARTIAL.fullmatch(file.name)
        if name is None:
            continue
        with suppress(OSError):  # another process may have removed the file, or the folder may be read-only
            is_local = name[1] == _machine_id()
            if (is_local and not _is_running(int(name[2]))) or time.time() - file.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(file) if file.is_dir() else file.unlink()


def is_partial(file: Path) -> bool:
    """Whether this is a temporary file or folder of `partial_file` or `atomic_directory`."""
    return _PARTIAL.fullmatch(file.name) is not None


def is_being_written(file: Path) -> bool:
    """Whether this is a temporary file or folder of a process that may still write it."""
    name = _PARTIAL.fullmatch(file.name)
    if name is None:
        return False
    if name[1] == _machine_id():
        return _is_running(int(name[2]))
    return time.time() - file.stat().st_mtime <= STALE_SECONDS


def remove_folder(folder: Path) -> None:
    """Remove a folder at once: it gets the name of an abandoned temporary folder before its files are deleted."""
    partial = folder.with_name(f".{folder.name}.{_machine_id()}-{os.getpid()}.partial")
    folder.rename(partial)
    shutil.rmtree(partial)


def _sync(stream: BinaryIO) -> None:
    """Force the content to disk, so that a crash after the rename cannot leave half of it."""
    stream.flush()
    os.fsync(stream.fileno())


def _machine_id() -> str:
    return digest_bytes(socket.gethostname().encode())[:8]


def _is_running(process_id: int) -> bool:
    try:
        with suppress(PermissionError):  # a process of another user
            os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def write_error(folder: Path, error: OSError) -> StorageError:
    """Why nothing can be written into a folder, with what the system says."""
    problem = f"Cannot write to {folder}: {error.strerror or error}"
    if error.errno in DISK_FULL:
        return disk_full(problem)
    return StorageError(
        problem, "a writable folder", "Choose another folder with -o or --store, or correct its permissions"
    )
