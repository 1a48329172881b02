"""Which format a file is in, by name, by content, by suffix; and what is refused before a line is read."""

from __future__ import annotations

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


def test_a_name_that_tells_nothing_lists_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"\x00\xff")
    with pytest.raises(Refusal, match="does not tell which format"):
        read(path)
    table = tmp_path / "a.tsv"
    table.write_text("a\tb\tc\td\n")
    with pytest.raises(Refusal, match="labelled, pairs"):
        read(table)


def test_the_limit_stops_reading_before_what_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n\xff\n")
    assert len(read(path, limit=2)) == 2
    with pytest.raises(Refusal, match="line 3"):
        read(path)


def test_a_compressed_file_is_recognised_by_the_suffix_before(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one two\n"))
    assert read(path).format == "text"


def test_all_items_skipped_is_refused_with_the_count(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("a\tI-X\n\nb\tB-X\nc\tI-Y\n")
    with pytest.raises(Refusal, match=r"2 skipped"):
        read(path, "columns", skip_bad=True, scheme="bio")


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("ud/en_ewt-ud-dev.conllu", "conllu"),
        ("srl/en_ewt-up-dev.conllu", "propositions"),
        ("opensesame/agr.0", "opensesame"),
        ("opensesame/aux.gen", "opensesame"),
        ("opensesame", "opensesame"),
        ("blimp", "blimp"),
        ("blimp/wh_island.jsonl", "blimp"),
        ("ner/wnut17train.conll", "columns"),
        ("ner/crossner-ai/dev.txt", "columns"),
        ("coref/gap-validation.tsv", "gap"),
        ("coref/litbank", "coreference"),
        ("coref/winobias/pro_stereotyped_type2.txt.dev", "winobias"),
        ("nli/snli", "pairs"),
        ("sentiment/ag", "labelled"),
        ("qa/xquad.en.json", "squad"),
        ("text/open-english.txt.xz", "text"),
    ],
)
def test_real_files_tell_their_format_and_only_that(path: str, format: str) -> None:
    file = shared(f"data/{path}")
    assert read(file, limit=1).format == format
    claims = {name for name, reader in readers().items() if reader.recognises is not None and reader.recognises(file)}
    assert claims == ({format} if format != "text" else set())
