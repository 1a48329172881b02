"""Figures as files: complete or not written, self-contained, of a physical size, refused with a remedy."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bertology.errors import MachineError, Refusal
from bertology.results.result import Result
from bertology.results.shapes import Matrix
from results.example_results import LONG_NAME, SHAPES, measures_and_baselines, result


@pytest.fixture
def table() -> Result:
    return result(SHAPES["Table"])


def write(figure: Result, path: Path, **options: str) -> Path:
    figure.figure(path, **options)  # pyright: ignore[reportArgumentType]  # options by name
    return path


def test_the_suffix_determines_the_format(table: Result, tmp_path: Path) -> None:
    assert write(table, tmp_path / "a.svg").read_text("utf-8").startswith("<svg ")
    assert write(table, tmp_path / "a.PNG", theme="dark").read_bytes().startswith(b"\x89PNG")
    assert write(table, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert write(table, tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.PNG", "a.html", "a.pdf", "a.svg"]


@pytest.mark.parametrize("name", SHAPES)
def test_images_have_the_width_that_is_asked_for(name: str, tmp_path: Path) -> None:
    asked = result(SHAPES[name])
    svg = write(asked, tmp_path / "a.svg", width="85mm").read_text("utf-8")
    root = ElementTree.fromstring(svg)
    assert root.get("width") == "85.00mm" and (root.get("height") or "").endswith("mm")
    left, top, width, _ = map(float, (root.get("viewBox") or "").split())
    assert (left, top) == (0, 0) and 8 / 11 * width == pytest.approx(85 * 72 / 25.4, abs=0.1)  # 11 units are 8 points
    png = write(asked, tmp_path / "a.png", width="8.5cm").read_bytes()
    assert struct.unpack(">I", png[16:20])[0] == pytest.approx(85 / 25.4 * 300, abs=1)
    per_metre, _, unit = struct.unpack(">IIB", png[png.index(b"pHYs") + 4 :][:9])
    assert (round(per_metre * 0.0254), unit) == (300, 1)
    pdf = write(asked, tmp_path / "a.pdf", width="240.945pt").read_bytes()
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ", pdf)
    assert box is not None and float(box[1]) == pytest.approx(240.945, abs=0.05)


def test_text_of_a_pdf_is_text_in_embedded_fonts(table: Result, tmp_path: Path) -> None:
    pdf = write(table, tmp_path / "a.pdf", width="85mm").read_bytes()
    assert b"/FontFile" in pdf and b"/ToUnicode" in pdf and not re.search(rb"/Subtype\s*/Image", pdf)


def test_no_text_is_smaller_than_seven_or_larger_than_nine_points(table: Result) -> None:
    sizes = {float(size) for size in re.findall(r"font(?:-size)?: ([\d.]+)px", table.figure(width="85mm").svg)}
    assert len(sizes) >= 3 and all(7 <= 8 / 11 * size <= 9 for size in sizes)


def test_a_figure_that_does_not_fit_is_refused_with_the_width_it_needs() -> None:
    names = tuple(f"column {number}" for number in range(80))
    wide = result(Matrix(**measures_and_baselines(3, 80), row_names=("a", "b", "c"), column_names=names))
    with pytest.raises(Refusal, match=r"at least \d+ mm"):
        wide.figure(width="60mm")


def test_panels_captions_and_themes_are_chosen(tmp_path: Path) -> None:
    curve = result(SHAPES["LayerCurve"])
    chosen = write(curve, tmp_path / "a.svg", panels="mass", caption="none").read_text("utf-8")
    body = chosen.partition("</style>")[2]
    assert ">mass<" in body and LONG_NAME[:20] not in body and "a-corpus" not in body and "Group: name" not in body
    short = curve.figure(caption="short").svg.partition("</style>")[2]
    assert "a-model on a-corpus; n = 7; 95 % bootstrap intervals." in short and "Special tokens" not in short
    page = write(curve, tmp_path / "a.html", panels="mass", caption="short").read_text("utf-8")
    assert page.count("<figure>") == 1 and "a-model on a-corpus; n = 7" in page
    with pytest.raises(Refusal, match="page has no width"):
        curve.figure(tmp_path / "b.html", width="85mm")


def test_pages_follow_the_browser_unless_a_theme_is_given(table: Result, tmp_path: Path) -> None:
    dark = "#16181c"
    both = write(table, tmp_path / "a.html").read_text("utf-8")
    assert dark in both and "prefers-color-scheme: dark" in both
    assert dark not in write(table, tmp_path / "a.html", theme="light").read_text("utf-8")
    only_dark = write(table, tmp_path / "a.html", theme="dark").read_text("utf-8")
    assert dark in only_dark and "prefers-color-scheme" not in only_dark
    light, dark_image = (write(table, tmp_path / "a.svg", theme=theme).read_text() for theme in ("light", "dark"))
    assert dark in dark_image and dark not in light


@pytest.mark.parametrize("name", SHAPES)
def test_a_page_is_self_contained(name: str, tmp_path: Path) -> None:
    page = write(result(SHAPES[name]), tmp_path / "page.html").read_text("utf-8")
    assert set(re.findall(r"https?://([^/\s\"'`]+)", page)) == {"www.w3.org"}
    assert not re.search(r"<(link|img|iframe)|\ssrc=|\shref=|@import", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_words_of_a_sentence_cannot_end_an_element(tmp_path: Path) -> None:
    page = write(result(SHAPES["Examples"]), tmp_path / "page.html").read_text("utf-8")
    assert page.count("</script>") == 2 and "&lt;/script&gt;" in page


def test_a_failed_write_keeps_the_earlier_figure(
    table: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(table, tmp_path / "a.svg")
    before = path.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(MachineError, match="No space left"):
        result(SHAPES["Scatter"]).figure(path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.svg"]


def test_files_that_cannot_be_written_are_refused(table: Result, tmp_path: Path) -> None:
    for name in ("figure.gif", "figure"):
        with pytest.raises(Refusal, match=r"\.svg, \.png, \.pdf, \.html"):
            table.figure(tmp_path / name)
    with pytest.raises(Refusal, match="folder"):
        table.figure(tmp_path / "nowhere" / "a.svg")


def test_png_and_pdf_need_a_further_package(table: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for name in ("a.png", "a.pdf"):
        with pytest.raises(Refusal, match=r"pip install 'bertology\[figures\]'"):
            table.figure(tmp_path / name)
    assert write(table, tmp_path / "a.svg").is_file() and write(table, tmp_path / "a.html").is_file()
