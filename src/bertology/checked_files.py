"""Files that tell whether they were damaged: JSON and binary files that carry a digest of their own content.

Arrays are .npz files as numpy writes them; their digest is a field of the JSON file that they belong to.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.atomic_files import DIGEST_LENGTH, atomic_writer, digest_bytes
from bertology.store_paths import StorePath

_START, _END = b'{"digest": "', b'", '
_HEADER_LENGTH = len(_START) + DIGEST_LENGTH + len(_END)
_MAGIC = b"bertology "
_MAGIC_LENGTH = len(_MAGIC) + DIGEST_LENGTH + 1


class DamagedFileError(ValueError):
    """A file whose content is not what was written."""


def write_checked_json(file: StorePath, content: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Write an object with at least one field as JSON whose first field is a digest of all that follows it."""
    text = json.dumps(dict(content), indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    rest = text[1:].lstrip()
    with atomic_writer(file) as stream:
        stream.write(_START + digest_bytes(rest).encode() + _END + rest)


def read_checked_json(file: StorePath) -> dict[str, Any]:
    """The object that `write_checked_json` wrote, without its digest; `DamagedFileError` if it is another."""
    content = file.read_bytes()
    rest = content[_HEADER_LENGTH:]
    if content[:_HEADER_LENGTH] != _START + digest_bytes(rest).encode() + _END:
        raise DamagedFileError(f"{file} is damaged, or was written by another version: its digest does not match")
    try:
        return json.loads(b"{" + rest)
    except (ValueError, RecursionError) as error:  # nothing that was written by `write_checked_json`
        raise DamagedFileError(f"{file} is no JSON, or nested too deeply") from error


def write_checked_bytes(file: StorePath, content: bytes) -> None:
    """Write bytes after a line that holds their digest."""
    with atomic_writer(file) as stream:
        stream.write(_MAGIC + digest_bytes(content).encode() + b"\n")
        stream.write(content)


def read_checked_bytes(file: StorePath) -> bytes:
    """The bytes that `write_checked_bytes` wrote; `DamagedFileError` if they are others."""
    content = file.read_bytes()
    rest = content[_MAGIC_LENGTH:]
    if content[:_MAGIC_LENGTH] != _MAGIC + digest_bytes(rest).encode() + b"\n":
        raise DamagedFileError(f"{file} is damaged, or was written by another version: its digest does not match")
    return rest


def write_arrays(file: StorePath, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write arrays as .npz; returns the digest of the file."""
    content: dict[str, Any] = dict(arrays)
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    with atomic_writer(file) as stream:
        stream.write(buffer.getbuffer())
    return digest_bytes(buffer.getvalue())


def read_arrays(file: StorePath, digest: str) -> dict[str, NDArray[Any]]:
    """The arrays of the file with this digest; `DamagedFileError` if it is missing or another one."""
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise DamagedFileError(f"{file} is missing") from error
    if digest_bytes(content) != digest:
        raise DamagedFileError(f"{file} is damaged: its digest does not match")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
