"""Files are written completely or not at all, and unwritable paths are refused before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.atomic_files import (
    atomic_writer,
    check_writable,
    digest_bytes,
    digest_file,
    partial_file,
    remove_stale_partials,
    write_atomically,
    write_if_absent,
)
from bertology.errors import Refusal


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert write_atomically(file, b"first") == file and write_atomically(file, b"second") == file
    assert file.read_bytes() == b"second" and list(tmp_path.iterdir()) == [file]


def test_a_failed_write_leaves_the_previous_content(tmp_path: Path) -> None:
    folder = tmp_path / "page.html"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(Refusal, match="cannot be written"):
        write_atomically(folder, b"page")
    assert list(tmp_path.iterdir()) == [folder] and (folder / "inside").is_dir()


def test_an_error_while_writing_leaves_the_previous_content(tmp_path: Path) -> None:
    file = write_atomically(tmp_path / "page.html", b"first")
    with pytest.raises(ValueError, match="stop"), atomic_writer(file) as stream:
        stream.write(b"second")
        raise ValueError("stop")
    assert file.read_bytes() == b"first" and list(tmp_path.iterdir()) == [file]


def test_the_first_of_two_writers_wins(tmp_path: Path) -> None:
    file = tmp_path / "new" / "manifest.json"
    write_if_absent(file, b"first")
    write_if_absent(file, b"second")
    assert file.read_bytes() == b"first" and list(file.parent.iterdir()) == [file]


def test_unwritable_paths_are_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path / "page.html")
    with pytest.raises(Refusal, match="no folder"):
        check_writable(tmp_path / "nowhere" / "page.html")
    with pytest.raises(Refusal, match="it is a folder"):
        check_writable(tmp_path)

    def deny(_path: Path, _mode: int) -> bool:
        return False

    monkeypatch.setattr("os.access", deny)
    with pytest.raises(Refusal, match="no write permission"):
        check_writable(tmp_path / "page.html")


def test_partial_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    with partial_file(tmp_path, "00001") as (_, alive):
        process = alive.name.split("-")[-1].split(".")[0]
        dead = alive.with_name(alive.name.replace(f"-{process}.", "-999999999."))
        dead.write_bytes(b"half")
        remove_stale_partials(tmp_path)
        assert alive.exists()
        assert not dead.exists()
    assert not alive.exists()


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    file = write_atomically(tmp_path / "file", content)
    assert digest_file(file) == digest_bytes(content) != digest_bytes(content[1:])
