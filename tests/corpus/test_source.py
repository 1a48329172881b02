"""Lines and blocks: numbering, decoding, compression, and the two ways with a fault."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from bertology.corpus.source import Problems, blocks, lines, text_of
from bertology.errors import Refusal


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_lines_are_numbered_and_decompressed(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack(b"\xef\xbb\xbfone\r\n\ntwo"))
    assert list(lines(path, Problems())) == [(1, "one"), (2, ""), (3, "two")]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\u2028still\x0cone\x85\ntwo\n")
    assert [number for number, _ in lines(path, Problems())] == [1, 2]


def test_a_fault_is_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\ntwo\n\nthree\n")
    with pytest.raises(Refusal) as caught:
        list(lines(path, Problems()))
    assert f"{path}, line 2:" in str(caught.value) and "--skip-bad" in str(caught.value)
    problems = Problems(skip_bad=True)
    assert list(lines(path, problems)) == [(1, "one"), (3, "two"), (4, ""), (5, "three")]
    assert [(skip.reason, skip.detail) for skip in problems.skipped] == [("not UTF-8", f"{path}, line 2")]
    assert list(blocks(path, Problems(skip_bad=True))) == [[(5, "three")]]
    assert text_of(path, Problems(skip_bad=True)) == ""


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize(
    "content",
    [b"not packed", gzip.compress(b"a" * 99)[:-9], lzma.compress(b"a" * 99)[:-9], b""],
    ids=["not packed", "cut gzip", "cut xz", "empty"],
)
def test_a_broken_archive_is_refused(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    try:
        assert list(lines(path, Problems(skip_bad=True))) == []
    except Refusal as refusal:
        assert path.name in str(refusal)


def test_a_folder_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(Refusal, match="cannot be read"):
            list(lines(path, Problems()))
