"""Files say what they are: title, caption, command, source and citations."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bertology.results.drawing.metadata import FigureMetadata, remake_command
from bertology.results.result import Result
from results.example_results import SHAPES, result


@pytest.fixture
def cited() -> Result:
    corpus = {"name": "english.conllu", "fingerprint": "f" * 32, "examples": 30}
    inputs = {"model": {"model": {"name": "mini", "fingerprint": "e" * 32}, "corpus": corpus}}
    provenance = {"citations": ["clark2019"], "question": "Wohin schaut Köpfe?"}
    options = {"seed": 1, "legacy": False, "special_tokens": "exclude", "label": ""}
    return result(SHAPES["LayerCurve"]).model_copy(
        update={"inputs": inputs, "provenance": provenance, "options": options}
    )


def test_the_command_remakes_the_result(cited: Result) -> None:
    assert remake_command(cited) == (
        "bertology run group/name --model mini --corpus english --limit 30 --seed 1 --no-legacy "
        "--special-tokens exclude"
    )
    assert remake_command(result(SHAPES["Table"])) == ""  # no corpus is called a-corpus


def test_svg_files_carry_title_caption_command_and_citation(cited: Result) -> None:
    root = ElementTree.fromstring(cited.figure(command="bertology run 'x' --figure a.svg").svg)
    title, caption, metadata = (root.findtext(f"{{*}}{tag}") or "" for tag in ("title", "desc", "metadata"))
    assert title == "Wohin schaut Köpfe?" and caption == cited.caption(full=True)
    assert "command: bertology run 'x' --figure a.svg" in metadata and "@inproceedings{clark2019," in metadata
    assert "mini on english.conllu · 30 examples" in metadata and "special_tokens=exclude" in metadata


def test_png_files_carry_them_in_valid_chunks(cited: Result, tmp_path: Path) -> None:
    cited.figure(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    position, texts = 8, dict[str, str]()
    while position < len(content):
        length = int.from_bytes(content[position : position + 4], "big")
        kind, data = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        assert zlib.crc32(kind + data) == int.from_bytes(content[position + 8 + length : position + 12 + length], "big")
        if kind == b"iTXt":
            key, _, rest = data.partition(b"\0")
            texts[key.decode()] = rest[4:].decode()
        position += 12 + length
    assert texts["Title"] == "Wohin schaut Köpfe?" and texts["Comment"].startswith("bertology run group/name")
    assert "clark2019" in texts["Source"]


def test_pdf_files_carry_them_in_an_information_dictionary(cited: Result, tmp_path: Path) -> None:
    cited.figure(tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    start = int(re.findall(rb"startxref\s+(\d+)", content)[-1])
    assert content[start:].startswith(b"xref")
    number, offset = re.search(rb"xref\n(\d+) 1\n(\d{10})", content[start:]).groups()  # pyright: ignore[reportOptionalMemberAccess]
    assert content[int(offset) :].startswith(number + b" 0 obj") and b"/Info " + number + b" 0 R" in content[start:]
    title = re.search(rb"/Title <FEFF([0-9A-F]+)>", content)
    assert title is not None and bytes.fromhex(title[1].decode()).decode("utf-16-be") == "Wohin schaut Köpfe?"
    keywords = re.search(rb"/Keywords <FEFF([0-9A-F]+)>", content)
    assert keywords is not None and b"bertology run" in bytes.fromhex(keywords[1].decode()).replace(b"\0", b"")


def test_a_document_without_a_trailer_is_left_alone(cited: Result) -> None:
    assert FigureMetadata.of(cited).add_to_pdf(b"%PDF broken") == b"%PDF broken"
