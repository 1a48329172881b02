"""All formats: the example is readable and recognised, and arbitrary input raises nothing but refusals."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.checks import ReaderSample, assert_offsets_match, assert_valid
from tests.corpus.readers.samples import FURTHER_FILES, NAMES

from bertology.corpus.read import read, readers
from bertology.errors import Refusal

FUZZING = settings(max_examples=40)
FORMATS = sorted(readers())
INSERTIONS = [*(bytes([b]) for b in b'\t\n-()|"0_ {[\xff'), b"\n\n", b"99", b"1-2", b"I-X"]


def make_sample(directory: Path, format: str) -> ReaderSample:
    sample = ReaderSample(directory, format, NAMES.get(format, "sample.txt"))
    for name, content in FURTHER_FILES.get(format, {}).items():
        sample.write(content, name)
    return sample


def test_the_documented_formats_exist() -> None:
    documented = """
        blimp coarsewsd conll conll2012 conllu gap glue_diagnostic labelled multiple_choice open_sesame pairs senteval
        squad text universal_propositions wic winobias words wsd_framework
    """
    assert set(readers()) >= set(documented.split())


@pytest.mark.parametrize("format", FORMATS)
def test_the_example_is_readable_and_recognised(format: str, tmp_path: Path) -> None:
    sample = make_sample(tmp_path, format)
    corpus = sample.read(readers()[format].example)
    assert_offsets_match(corpus)
    assert not corpus.skipped
    assert corpus.format == format
    assert read(sample.path).examples == corpus.examples, "the format is detected"


@pytest.mark.parametrize("format", FORMATS)
def test_the_declaration_is_complete(format: str) -> None:
    declared = readers()[format]
    assert declared.description and declared.function.__doc__
    assert declared.function.__module__ == f"bertology.corpus.readers.{format}"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_an_empty_file_is_refused(format: str, content: str, tmp_path: Path) -> None:
    make_sample(tmp_path, format).assert_refused(content, "contains no examples")


@pytest.mark.parametrize("format", FORMATS)
def test_bytes_that_are_not_utf8_are_refused_with_their_line(format: str, tmp_path: Path) -> None:
    sample = make_sample(tmp_path, format)
    content = readers()[format].example.encode() + b"\n\xff\xfe\n"
    lines = content.count(b"\n")
    sample.assert_refused(content, "UTF-8", line=lines)
    with suppress(Refusal):
        assert "not UTF-8" in {skip.reason for skip in sample.read(content, skip_malformed=True).skipped}


@pytest.mark.parametrize("format", FORMATS)
def test_a_directory_or_a_corrupt_compressed_file_is_refused(format: str, tmp_path: Path) -> None:
    directory = tmp_path / "empty"
    directory.mkdir()
    with pytest.raises(Refusal):
        read(directory, format)
    name = NAMES.get(format, "sample.txt")
    corrupt = tmp_path / f"{name}.gz"
    corrupt.write_bytes(gzip.compress(readers()[format].example.encode())[:-9])
    with pytest.raises(Refusal):
        read(corrupt, format)


@pytest.mark.parametrize("format", FORMATS)
def test_an_unknown_option_is_refused(format: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="option"):
        make_sample(tmp_path, format).read(readers()[format].example, sentense="x")


def assert_only_refusals(format: str, content: bytes) -> None:
    """Assert that reading gives a valid corpus or a refusal, with and without skip_malformed and a named format."""
    with TemporaryDirectory() as directory:
        sample = make_sample(Path(directory), format)
        path = sample.write(content)
        for skip_malformed in (False, True):
            with suppress(Refusal):
                assert_valid(read(path, format, skip_malformed=skip_malformed))
        with suppress(Refusal):
            read(path, skip_malformed=True)


@pytest.mark.parametrize("format", FORMATS)
def test_random_bytes_raise_only_refusals(format: str) -> None:
    @FUZZING
    @given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
    def check(content: bytes) -> None:
        assert_only_refusals(format, content)

    check()


@st.composite
def damaged_samples(draw: st.DrawFn, sample: bytes) -> bytes:
    """Two copies of the sample with a few parts removed, doubled or overwritten."""
    content = sample + b"\n\n" + sample
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        change = draw(st.sampled_from([b"", content[start:end] * 2, *INSERTIONS]))
        content = content[:start] + change + content[end:]
    return content


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_example_raises_only_refusals(format: str) -> None:
    sample = readers()[format].example.encode()

    @FUZZING
    @given(damaged_samples(sample))
    def check(content: bytes) -> None:
        assert_only_refusals(format, content)

    check()
