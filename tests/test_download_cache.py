"""Local copies of remote files: downloaded once, named by digest, checked, and bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertology.atomic_files import digest_bytes
from bertology.checked_files import DamagedFileError
from bertology.download_cache import checked_copy
from bertology.errors import Refusal
from bertology.store_paths import RemotePath, download_folder
from object_stores import memory_address

__all__ = ["memory_address"]

VARIABLE = "BERTOLOGY_DOWNLOAD_BYTES"


def _upload(address: str, content: bytes) -> tuple[RemotePath, str]:
    digest = digest_bytes(content)
    file = RemotePath(address) / f"{digest}.bin"
    file.create_bytes(content)
    return file, digest


def _names() -> set[str]:
    return {file.name for file in download_folder().iterdir()}


def test_a_file_is_downloaded_once(memory_address: str) -> None:
    file, digest = _upload(memory_address, b"content")
    copy = checked_copy(file, digest)
    assert copy.read_bytes() == b"content"
    assert copy.name == f"{digest}.bin"
    file.unlink()
    assert checked_copy(file, digest) == copy


def test_other_bytes_are_refused_and_not_kept(memory_address: str) -> None:
    file, digest = _upload(memory_address, b"content")
    file.unlink()
    with pytest.raises(DamagedFileError, match="is missing"):
        checked_copy(file, digest)
    file.create_bytes(b"contend")
    with pytest.raises(DamagedFileError, match="its digest does not match"):
        checked_copy(file, digest)
    assert not _names()


def test_a_local_file_is_its_own_copy(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"content")
    assert checked_copy(file, digest_bytes(b"content")) is file
    with pytest.raises(DamagedFileError):
        checked_copy(file, digest_bytes(b"contend"))


def test_the_copies_used_longest_ago_are_deleted(memory_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "250")
    files = [_upload(memory_address, bytes([number]) * 100) for number in range(4)]
    copies = [checked_copy(*file) for file in files[:2]]
    os.utime(copies[0], (1, 1))
    os.utime(copies[1], (2, 2))
    checked_copy(*files[0])  # used again: now the newest
    checked_copy(*files[2])
    assert _names() == {f"{files[0][1]}.bin", f"{files[2][1]}.bin"}
    monkeypatch.setenv(VARIABLE, "50")
    checked_copy(*files[3])
    assert _names() == {f"{files[3][1]}.bin"}, "the newest stays, however large it is"


def test_a_bound_that_is_no_number_is_refused(memory_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(Refusal, match=VARIABLE):
        checked_copy(*_upload(memory_address, b"content"))
