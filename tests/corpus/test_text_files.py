"""Lines and groups of lines: numbering, decoding, compression, and malformed input refused or counted."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from bertology.corpus.text_files import ParseErrorHandler, line_groups, lines, read_text_file
from bertology.errors import Refusal


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_lines_are_numbered_and_decompressed(suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(compress(b"\xef\xbb\xbfone\r\n\ntwo"))
    assert list(lines(path, ParseErrorHandler())) == [(1, "one"), (2, ""), (3, "two")]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\u2028still\x0cone\x85\ntwo\n")
    assert [number for number, _ in lines(path, ParseErrorHandler())] == [1, 2]


def test_a_malformed_line_is_refused_or_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\ntwo\n\nthree\n")
    with pytest.raises(Refusal) as caught:
        list(lines(path, ParseErrorHandler()))
    assert f"{path}, line 2:" in str(caught.value) and "--skip-malformed" in str(caught.value)
    errors = ParseErrorHandler(skip_malformed=True)
    assert list(lines(path, errors)) == [(1, "one"), (3, "two"), (4, ""), (5, "three")]
    assert [(skip.reason, skip.location) for skip in errors.skipped] == [("not UTF-8", f"{path}, line 2")]
    assert list(line_groups(path, ParseErrorHandler(skip_malformed=True))) == [[(5, "three")]]
    assert read_text_file(path, ParseErrorHandler(skip_malformed=True)) == ""


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
@pytest.mark.parametrize(
    "content",
    [b"not compressed", gzip.compress(b"a" * 99)[:-9], lzma.compress(b"a" * 99)[:-9], b""],
    ids=["not compressed", "truncated gzip", "truncated xz", "empty"],
)
def test_a_corrupt_compressed_file_is_refused(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    try:
        assert list(lines(path, ParseErrorHandler(skip_malformed=True))) == []
    except Refusal as refusal:
        assert path.name in str(refusal)


def test_a_directory_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    for path, problem in ((tmp_path, "is a folder"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(Refusal, match=problem):
            list(lines(path, ParseErrorHandler()))
