"""What is written is written whole or not at all, and what cannot be is refused before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.errors import Refusal
from bertology.results.whole_file import require_place, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert write_whole(file, b"first") == file and write_whole(file, b"second") == file
    assert file.read_bytes() == b"second" and list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "page.html"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(Refusal, match="cannot be written"):
        write_whole(folder, b"page")
    assert list(tmp_path.iterdir()) == [folder] and (folder / "inside").is_dir()


def test_a_place_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_place(tmp_path / "page.html")
    with pytest.raises(Refusal, match="no folder"):
        require_place(tmp_path / "nowhere" / "page.html")
    with pytest.raises(Refusal, match="it is a folder"):
        require_place(tmp_path)

    def nothing_may_be_written(_path: Path, _mode: int) -> bool:
        return False

    monkeypatch.setattr("os.access", nothing_may_be_written)
    with pytest.raises(Refusal, match="may not be written to"):
        require_place(tmp_path / "page.html")
