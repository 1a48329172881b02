"""What holds for every registered format: its example reads, and no input, however broken, escapes as a bug."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.checks import DETERMINED, Reading, assert_surfaces, check

from bertology.corpus.read import read, readers
from bertology.errors import Refusal

NAMES = {
    "conllu": "sample.conllu",
    "propositions": "sample.conllu",
    "columns": "sample.conll",
    "coreference": "sample.conll",
    "labelled": "sample.tsv",
    "pairs": "sample.tsv",
    "gap": "sample.tsv",
    "diagnostic": "sample.tsv",
    "squad": "sample.json",
    "choice": "sample.json",
    "blimp": "sample.jsonl",
    "opensesame": "agr.5",
    "raganato": "sample.data.xml",
    "coarsewsd": "train.data.txt",
    "wic": "train.data.txt",
}
BESIDE = {
    "raganato": {"sample.gold.key.txt": "d000.s000.t000 dog%1:05:00::\n"},
    "coarsewsd": {"train.gold.txt": "0\n", "classes_map.txt": '{"0": "apple_fruit", "1": "apple_inc"}'},
    "wic": {"train.gold.txt": "F\n"},
}
SCOPE = settings(DETERMINED, max_examples=40)
FORMATS = sorted(readers())


def reading(folder: Path, format: str) -> Reading:
    made = Reading(folder, format, NAMES.get(format, "sample.txt"))
    for name, content in BESIDE.get(format, {}).items():
        made.write(content, name)
    return made


def test_the_formats_are_those_promised() -> None:
    promised = "blimp choice coarsewsd columns conllu coreference gap labelled opensesame pairs propositions raganato"
    assert set(readers()) >= {*promised.split(), "diagnostic", "senteval", "squad", "text", "wic", "winobias"}


@pytest.mark.parametrize("format", FORMATS)
def test_the_example_reads_and_is_recognised(format: str, tmp_path: Path) -> None:
    sample = reading(tmp_path, format)
    corpus = sample.read(readers()[format].example)
    assert_surfaces(corpus)
    assert not corpus.skipped
    assert corpus.format == format
    assert read(sample.path).items == corpus.items, "the file alone tells its format"


@pytest.mark.parametrize("format", FORMATS)
def test_the_declaration_is_complete(format: str) -> None:
    declared = readers()[format]
    assert declared.about and declared.function.__doc__
    assert declared.function.__module__ == f"bertology.corpus.readers.{format}"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_an_empty_file_is_refused(format: str, content: str, tmp_path: Path) -> None:
    reading(tmp_path, format).refused(content, "holds no items")


@pytest.mark.parametrize("format", FORMATS)
def test_bytes_that_are_not_utf8_are_refused_with_their_line(format: str, tmp_path: Path) -> None:
    sample = reading(tmp_path, format)
    content = readers()[format].example.encode() + b"\n\xff\xfe\n"
    lines = content.count(b"\n")
    sample.refused(content, "UTF-8", line=lines)
    with suppress(Refusal):
        assert "not UTF-8" in {skip.reason for skip in sample.read(content, skip_bad=True).skipped}


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_or_a_broken_archive_is_refused(format: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(Refusal):
        read(folder, format)
    name = NAMES.get(format, "sample.txt")
    broken = tmp_path / f"{name}.gz"
    broken.write_bytes(gzip.compress(readers()[format].example.encode())[:-9])
    with pytest.raises(Refusal):
        read(broken, format)


@pytest.mark.parametrize("format", FORMATS)
def test_an_unknown_option_is_refused(format: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="option"):
        reading(tmp_path, format).read(readers()[format].example, sentense="x")


def only_refuses(format: str, content: bytes) -> None:
    """Reading gives a sound corpus or a refusal, both with and without skip_bad, by name and by recognition."""
    with TemporaryDirectory() as folder:
        sample = reading(Path(folder), format)
        path = sample.write(content)
        for skip_bad in (False, True):
            with suppress(Refusal):
                check(read(path, format, skip_bad=skip_bad))
        with suppress(Refusal):
            read(path, skip_bad=True)


@pytest.mark.parametrize("format", FORMATS)
def test_random_bytes_only_refuse(format: str) -> None:
    @SCOPE
    @given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
    def holds(content: bytes) -> None:
        only_refuses(format, content)

    holds()


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """The sample twice over with a few stretches cut out, doubled, or overwritten."""
    content = sample + b"\n\n" + sample
    pieces = [
        b"\t",
        b"\n",
        b"\n\n",
        b"-",
        b"(",
        b")",
        b"|",
        b'"',
        b"0",
        b"99",
        b"1-2",
        b"_",
        b" ",
        b"I-X",
        b"{",
        b"[",
        b"\xff",
    ]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        change = draw(st.sampled_from([b"", content[start:end] * 2, *pieces]))
        content = content[:start] + change + content[end:]
    return content


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_example_only_refuses(format: str) -> None:
    sample = readers()[format].example.encode()

    @SCOPE
    @given(damaged(sample))
    def holds(content: bytes) -> None:
        only_refuses(format, content)

    holds()
