"""Files that people give: plain files of a bounded size, whose content is checked before it is used.

A named pipe would never end, and a small archive can unpack to more than the memory holds: both are refused.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from pydantic import ValidationError

from bertology.arrays import Array
from bertology.errors import Refusal
from bertology.store_paths import refuse_address

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4096
MAX_JSON_BYTES = 2**30
MAX_JSON_DEPTH = 200
MAX_UNPACKED_BYTES = 2**34
MAX_COMPRESSION = 1032
"""No stream of deflate unpacks to more than this many times its size."""
MAX_SHOWN_LENGTH = 60
MAX_REASON = 200
PLAIN_FILE = "a plain file"

_KIND_NAMES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_path(path: Path) -> Path:
    """The path, unless no file can have such a name."""
    refuse_address(path)
    if not _is_possible(str(path)):
        name = shorten_name(path)
        raise Refusal(
            f"{name} has a part of {max(map(_n_bytes, path.parts), default=0)} bytes, or a character that no name has",
            f"a path of names of at most {MAX_NAME_BYTES} bytes",
            "Choose a shorter name",
        )
    return path


def path_exists(text: str | Path) -> bool:
    """Whether there is a file or folder of this name; False for a text that no file can have as its name."""
    return _is_possible(str(text)) and Path(text).exists()


def expand_path(text: str) -> Path:
    """The path of a text, with `~` replaced by the folder of the user where there is one."""
    path = check_path(Path(text))
    try:
        return path.expanduser()
    except RuntimeError:  # there is no such user
        return path


def shorten_name(path: str | Path) -> str:
    """A path in one line for a message, cut if it is long."""
    text = repr(str(path))[1:-1]
    return text if len(text) <= MAX_PATH_BYTES // 16 else f"{text[:MAX_SHOWN_LENGTH]} ..."


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading; anything else is refused, without waiting for it."""
    check_path(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _not_plain(path, status.st_mode)
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def _not_plain(path: Path, mode: int) -> Refusal:
    kind = _KIND_NAMES.get(stat.S_IFMT(mode), "no plain file")
    return Refusal(f"{shorten_name(path)} is {kind}", PLAIN_FILE, "Name a file, or copy its content into one")


def unreadable(path: Path, error: Exception, expected: str = "a readable file") -> Refusal:
    """The refusal of a file that cannot be read, with the reason of the system in one line."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else describe_error(error)
    return Refusal(
        f"{shorten_name(path)} cannot be read ({reason})", expected, "Check the path, or copy the file again"
    )


def describe_error(error: Exception) -> str:
    """Why a value was not accepted, in one line: of several reasons, the first with its place."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")[:MAX_REASON]
    return " ".join(str(error).split())[:MAX_REASON]


def check_folder(folder: Path) -> None:
    """Refuse a folder with links out of it, which would be read in place of what was copied, or with named pipes."""
    if not path_exists(folder) or not folder.is_dir():
        return
    root = folder.resolve()
    if root.parent.name == "snapshots":  # the cache of the hub keeps each file once and links to it
        root = root.parent.parent
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            raise _not_plain(path, mode)
        if stat.S_ISLNK(mode) and not path.resolve().is_relative_to(root):
            raise Refusal(
                f"{shorten_name(path)} is a link to {shorten_name(path.resolve())}, outside of its folder",
                "files in the folder itself",
                "Copy the file into the folder, if you trust where it comes from",
            )


def read_bytes(path: Path, *, maximum: int = MAX_JSON_BYTES) -> bytes:
    """The content of a plain file that is not longer than `maximum`."""
    with open_plain(path) as stream:
        try:
            if os.fstat(stream.fileno()).st_size > maximum:
                raise _too_large(path, maximum)
            return stream.read(maximum)
        except OSError as error:
            raise unreadable(path, error) from error


def read_json(path: Path, expected: str) -> Any:
    """The JSON value in a plain file; `expected` says what the file should hold."""
    content = read_bytes(path)
    try:
        return parse_json_text(content.decode("utf-8"))
    except ValueError as error:
        raise unreadable(path, error, expected) from error


def read_json_object(path: Path, expected: str) -> dict[str, Any]:
    """The JSON object in a plain file."""
    value = read_json(path, expected)
    if not isinstance(value, dict):
        raise Refusal(f"{shorten_name(path)} holds a {type(value).__name__}", expected, "Copy the file again")
    return cast("dict[str, Any]", value)


def parse_json_text(text: str) -> Any:
    """A JSON value without NaN and infinities, not nested too deeply; a `ValueError` otherwise."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"JSON nested more than {MAX_JSON_DEPTH} deep") from None
    if _depth_exceeds(value, MAX_JSON_DEPTH):
        raise ValueError(f"JSON nested more than {MAX_JSON_DEPTH} deep")
    if "\\ud" in text.lower():  # only an escape can give an unpaired surrogate, which no file can be written with
        json.dumps(value, ensure_ascii=False).encode()
    return value


def unpack_gzip(path: Path, stream: BinaryIO, chunk_bytes: int = 2**20) -> Iterator[bytes]:
    """The content of a gzip stream in chunks; one that is damaged, or unpacks to too much, is refused."""
    unpacked = 0
    try:
        with gzip.open(stream) as content:
            while chunk := content.read(chunk_bytes):
                unpacked += len(chunk)
                if unpacked > MAX_UNPACKED_BYTES:
                    raise _too_large(path, MAX_UNPACKED_BYTES)
                yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error, "a complete file in the format gzip") from error


class GzipReader(io.RawIOBase):
    """A gzip stream as a file of its unpacked bytes, within the bounds of `unpack_gzip`."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._chunks = unpack_gzip(path, stream)
        self._chunk = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with the next bytes; 0 at the end."""
        if not self._chunk:
            self._chunk = next(self._chunks, b"")
        part, self._chunk = self._chunk[: len(buffer)], self._chunk[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def load_arrays(path: Path, expected: str) -> dict[str, Array]:
    """The arrays of an .npz file by name; pickles, wrong lengths and archives that unpack to too much are refused."""
    with open_plain(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_archive(archive, path)
                return {name.removesuffix(".npy"): _read_member(archive, name) for name in archive.namelist()}
        except Refusal:
            raise
        except Exception as error:  # zipfile and NumPy raise many kinds of errors for damaged archives
            raise unreadable(path, error, expected) from error


def load_array(path: Path, expected: str) -> Array:
    """The array of an .npy file; a pickle, or a file shorter than its header says, is refused."""
    with open_plain(path) as stream:
        try:
            _check_header(stream, os.fstat(stream.fileno()).st_size, path.name)
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:  # NumPy raises many kinds of errors for damaged files
            raise unreadable(path, error, expected) from error


def _check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MAX_UNPACKED_BYTES or any(
        member.file_size > MAX_COMPRESSION * max(member.compress_size, 1) for member in archive.infolist()
    ):
        raise _too_large(path, MAX_UNPACKED_BYTES)


def _read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """One array; its header is checked against the length of its data before any memory is taken."""
    with archive.open(name) as member:
        _check_header(member, archive.getinfo(name).file_size, name)
    with archive.open(name) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _check_header(stream: Any, size: int, name: str) -> None:
    version = np.lib.format.read_magic(stream)
    if version not in {(1, 0), (2, 0), (3, 0)}:
        raise ValueError(f"{name} has the unknown format {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.hasobject:
        raise ValueError(f"{name} is a pickle, which can run code")
    if any(length < 0 for length in shape) or math.prod(shape) * max(dtype.itemsize, 1) > max(size, 1):
        raise ValueError(f"{name} is shorter than its shape says")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _depth_exceeds(value: Any, maximum: int) -> bool:
    level = [value]
    for _ in range(maximum):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _is_possible(text: str) -> bool:
    if "\0" in text or _n_bytes(text) > MAX_PATH_BYTES:
        return False
    return all(_n_bytes(part) <= MAX_NAME_BYTES for part in Path(text).parts)


def _n_bytes(text: str) -> int:
    return len(os.fsencode(text))


def _too_large(path: Path, maximum: int) -> Refusal:
    return Refusal(
        f"{shorten_name(path)} holds more than {maximum / 2**30:g} GiB, packed or unpacked",
        "a file that fits into memory",
        "Split it into several files",
    )
