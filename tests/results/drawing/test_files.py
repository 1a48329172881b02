"""Figures as files: complete or not written, self-contained, refused with a remedy."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import pytest

from bertology.errors import Refusal
from bertology.results.result import Result
from results.example_results import SHAPES, result


@pytest.fixture
def table() -> Result:
    return result(SHAPES["Table"])


def test_the_suffix_determines_the_format(table: Result, tmp_path: Path) -> None:
    assert table.save(tmp_path / "a.svg").read_text("utf-8").startswith("<svg ")
    assert table.figure(str(tmp_path / "a.PNG"), theme="dark").read_bytes().startswith(b"\x89PNG")
    assert table.save(tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert table.save(tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.PNG", "a.html", "a.pdf", "a.svg"]


def test_png_files_have_300_pixels_per_inch(table: Result, tmp_path: Path) -> None:
    content = table.save(tmp_path / "a.png").read_bytes()
    start = content.index(b"pHYs") + 4
    per_metre, _, unit = struct.unpack(">IIB", content[start : start + 9])
    assert (round(per_metre * 0.0254), unit) == (300, 1)
    width = re.search(r'width="(\d+)"', table.figure().svg)
    assert width is not None
    assert struct.unpack(">I", content[16:20])[0] == pytest.approx(int(width[1]) * 300 / 72, abs=1)


def test_themes_differ(table: Result, tmp_path: Path) -> None:
    for suffix in ("svg", "html"):
        light, dark = (table.save(tmp_path / f"{theme}.{suffix}", theme).read_text() for theme in ("light", "dark"))
        assert "#16181c" in dark and "#16181c" not in light


@pytest.mark.parametrize("name", SHAPES)
def test_a_page_is_self_contained(name: str, tmp_path: Path) -> None:
    page = result(SHAPES[name]).save(tmp_path / "page.html").read_text("utf-8")
    assert set(re.findall(r"https?://([^/\s\"'`]+)", page)) == {"www.w3.org"}
    assert not re.search(r"<(link|img|iframe)|\ssrc=|\shref=|@import", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_words_of_a_sentence_cannot_end_an_element(tmp_path: Path) -> None:
    page = result(SHAPES["Examples"]).save(tmp_path / "page.html").read_text("utf-8")
    assert page.count("</script>") == 1 and "&lt;/script&gt;" in page


def test_a_failed_write_keeps_the_earlier_figure(
    table: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table.save(tmp_path / "a.svg")
    before = path.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(Refusal, match="No space left"):
        result(SHAPES["Scatter"]).save(path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.svg"]


def test_files_that_cannot_be_written_are_refused(table: Result, tmp_path: Path) -> None:
    for name in ("figure.gif", "figure"):
        with pytest.raises(Refusal, match=r"\.svg, \.png, \.pdf, \.html"):
            table.save(tmp_path / name)
    with pytest.raises(Refusal, match="folder"):
        table.save(tmp_path / "nowhere" / "a.svg")


def test_png_and_pdf_need_a_further_package(table: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for name in ("a.png", "a.pdf"):
        with pytest.raises(Refusal, match=r"pip install 'bertology\[figures\]'"):
            table.save(tmp_path / name)
    assert table.save(tmp_path / "a.svg").is_file() and table.save(tmp_path / "a.html").is_file()
