"""Detection of the format by name, suffix and content, and refusals before a line is read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.shared_data import shared

from bertology.corpus.read import read, readers
from bertology.errors import Refusal


def test_a_missing_path_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="does not exist"):
        read(tmp_path / "none.txt")
    path = tmp_path / "a.txt"
    path.write_text("a b\n")
    with pytest.raises(Refusal, match="Did you mean 'conllu'"):
        read(path, "connlu")
    with pytest.raises(Refusal, match="option of the format text"):
        read(path, "text", word="x")


def test_an_undetermined_format_is_refused_with_the_possible_formats(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"\x00\xff")
    with pytest.raises(Refusal, match="do not determine its format"):
        read(path)
    table = tmp_path / "a.tsv"
    table.write_text("a\tb\tc\td\n")
    with pytest.raises(Refusal, match="labelled, pairs"):
        read(table)


def test_the_limit_stops_reading_before_malformed_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n\xff\n")
    assert len(read(path, limit=2)) == 2
    with pytest.raises(Refusal, match="line 3"):
        read(path)


def test_the_format_of_a_compressed_file_is_that_of_the_inner_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one two\n"))
    assert read(path).format == "text"


def test_a_file_without_well_formed_examples_is_refused_with_the_number_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("a\tI-X\n\nb\tB-X\nc\tI-Y\n")
    with pytest.raises(Refusal, match=r"2 skipped"):
        read(path, "conll", skip_malformed=True, scheme="bio")


def test_a_specific_suffix_determines_the_format_of_malformed_content(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("1\tonly two\n")
    with pytest.raises(Refusal, match="tab-separated columns"):
        read(path)


def test_content_decides_between_formats_with_the_same_suffix(tmp_path: Path) -> None:
    for format in ("conllu", "universal_propositions"):
        path = tmp_path / f"{format}.conllu"
        path.write_text(readers()[format].example)
        assert read(path).format == format
    path = tmp_path / "dependencies.conll"
    path.write_text(readers()["conllu"].example)
    assert read(path).format == "conllu"


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("ud/en_ewt-ud-dev.conllu", "conllu"),
        ("srl/en_ewt-up-dev.conllu", "universal_propositions"),
        ("opensesame/agr.0", "open_sesame"),
        ("opensesame/aux.gen", "open_sesame"),
        ("opensesame", "open_sesame"),
        ("blimp", "blimp"),
        ("blimp/wh_island.jsonl", "blimp"),
        ("ner/wnut17train.conll", "conll"),
        ("ner/crossner-ai/dev.txt", "conll"),
        ("coref/gap-validation.tsv", "gap"),
        ("coref/litbank", "conll2012"),
        ("coref/winobias/pro_stereotyped_type2.txt.dev", "winobias"),
        ("nli/snli", "pairs"),
        ("sentiment/ag", "labelled"),
        ("qa/xquad.en.json", "squad"),
        ("text/open-english.txt.xz", "text"),
    ],
)
def test_the_format_of_real_files_is_detected_and_only_one_reader_matches(path: str, format: str) -> None:
    file = shared(f"data/{path}")
    assert read(file, limit=1).format == format
    matching = {name for name, reader in readers().items() if reader.matches is not None and reader.matches(file)}
    assert matching == ({format} if format != "text" else set())
