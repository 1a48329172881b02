"""Figures as files: whole or not at all, on their own, refused with a way out; and what a notebook shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bertology.errors import Refusal
from bertology.results.charts import files
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid
from drawn import EVERY, measured, result

# Names of vocabularies, a message, and the editor that the page's menu leaves out: nothing that is ever fetched.
NAMES = {"www.w3.org", "vega.github.io", "github.com"}


@pytest.fixture
def small() -> Result:
    return result(EVERY["Table"])


def test_files_are_what_their_suffix_says(small: Result, tmp_path: Path) -> None:
    assert small.save(tmp_path / "a.svg").read_text("utf-8").startswith("<svg ")
    assert small.save(str(tmp_path / "a.PNG"), theme="dark").read_bytes().startswith(b"\x89PNG")
    assert small.save(tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.PNG", "a.html", "a.svg"]


def test_themes_differ(small: Result, tmp_path: Path) -> None:
    light, dark = (small.save(tmp_path / f"{theme}.svg", theme).read_text("utf-8") for theme in ("light", "dark"))
    assert "#16181c" in dark and "#16181c" not in light


def test_a_page_holds_all_it_needs(tmp_path: Path) -> None:
    page = result(EVERY["Examples"]).save(tmp_path / "page.html").read_text("utf-8")
    assert set(re.findall(r"https?://([^/\s\"'`]+)", page)) <= NAMES
    outside = re.sub(r"<script.*</script>", "", page, flags=re.DOTALL)
    assert "http:" not in outside and "https:" not in outside
    assert not re.search(r"<(link|img|iframe)|\ssrc=|\shref=|@import", outside)
    assert "default-src 'none'" in page and '"editor": false' in page


def test_words_of_a_sentence_cannot_end_the_script(tmp_path: Path) -> None:
    page = result(EVERY["Examples"]).save(tmp_path / "page.html").read_text("utf-8")
    assert page.count("</script>") == 1
    assert "\\u003c/script>" in page and '"word": "NAME"' in page


def test_a_failed_write_leaves_the_earlier_figure(
    small: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small.save(tmp_path / "a.svg")
    before = place.read_bytes()

    def fail(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(Refusal, match="No space left"):
        result(EVERY["Scatter"]).save(place)
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.svg"]


def test_mistakes_are_refused(small: Result, tmp_path: Path) -> None:
    for name in ("figure.pdf", "figure"):
        with pytest.raises(Refusal, match=r"\.svg, \.png, \.html"):
            small.save(tmp_path / name)
    with pytest.raises(Refusal, match="no folder"):
        small.save(tmp_path / "nowhere" / "a.svg")


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_missing_extra_is_told(small: Result, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for ask in (small.figure, lambda: small.save(tmp_path / "a.svg")):
        with pytest.raises(Refusal, match=r"pip install 'bertology\[figures\]'"):
            ask()


def test_notebooks_show_the_figure(small: Result) -> None:
    shown = small._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]  # the name notebooks call
    assert set(shown) == {"text/plain", "image/svg+xml"}
    assert shown["image/svg+xml"] == files.svg(small, "light")
    assert shown["text/plain"] == "group/name: Table, n = 7"


def test_notebooks_show_a_table_where_figures_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    shown = result(EVERY["Table"])._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    assert "<table>" in shown["text/html"] and "&lt;/script&gt;" in shown["text/html"]
    long = result(HeadGrid(**measured(12, 12)))._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    assert "The first 200 of 288 rows" in long["text/html"]
