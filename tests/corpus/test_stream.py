"""Corpora that are read in parts: the same examples and fingerprint as read at once, and errors where they occur."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet as parquet
import pytest

import bertology
from bertology.corpus.corpus import Corpus
from bertology.corpus.hashing import Fingerprint
from bertology.corpus.stream import CorpusStream
from bertology.errors import Refusal

DATA = Path(bertology.__file__).parent / "corpus" / "data"
TEXTS = [f"Sentence number {number}." for number in range(25)]


def _check_same(stream: CorpusStream, whole: Corpus) -> list[Corpus]:
    """Examples and fingerprint are those of the corpus read at once; returns the parts."""
    parts = list(stream.parts())
    fingerprint = Fingerprint()
    for part in parts:
        fingerprint.update(part)
    assert tuple(chain(*parts)) == tuple(whole)
    assert fingerprint.digest == whole.fingerprint
    assert [len(part) for part in parts[:-1]] == [stream.part_size] * (len(parts) - 1)
    return parts


@pytest.mark.parametrize("part_size", [1, 7, 25, 100])
def test_text_is_read_in_parts(tmp_path: Path, part_size: int) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(TEXTS))
    parts = _check_same(bertology.stream_corpus(file, part_size=part_size), bertology.read(file))
    assert len(parts) == -(-25 // part_size)
    assert {(part.name, part.format) for part in parts} == {("corpus.txt", "text")}


def test_a_treebank_is_read_in_parts() -> None:
    file = DATA / "english.conllu"
    _check_same(bertology.stream_corpus(file, part_size=50), bertology.read(file))


def test_parquet_files_and_folders_are_read_in_parts(tmp_path: Path) -> None:
    library: Any = parquet
    rows = [{"sentence": text, "label": number % 2} for number, text in enumerate(TEXTS)]
    for number, start in enumerate((0, 10)):
        end = 10 if not start else 25
        library.write_table(
            pyarrow.Table.from_pylist(rows[start:end]), tmp_path / f"{number}.parquet", row_group_size=4
        )
    _check_same(bertology.stream_corpus(tmp_path, part_size=6), bertology.corpus(rows))
    one = bertology.stream_corpus(tmp_path / "0.parquet", part_size=6, text="sentence", limit=7)
    assert [len(part) for part in one.parts()] == [6, 1]


def test_a_data_set_is_read_in_parts() -> None:
    library: Any = datasets
    data = library.Dataset.from_dict({"text": TEXTS, "label": [number % 3 for number in range(25)]})
    whole = bertology.corpus(data)
    _check_same(bertology.stream_corpus(data, part_size=10), whole)
    streamed = bertology.stream_corpus(data.to_iterable_dataset(), part_size=10)
    _check_same(streamed, whole)
    _check_same(streamed, whole)  # a second time from the beginning


def test_malformed_examples_are_counted_with_the_part_they_are_in(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    lines = [text.encode() for text in TEXTS[:6]]
    lines[1:1] = [b"\xff one"]
    lines += [b"\xff two", b"\xff three"]
    file.write_bytes(b"\n".join(lines))
    parts = _check_same(
        bertology.stream_corpus(file, part_size=3, skip_malformed=True), bertology.read(file, skip_malformed=True)
    )
    assert [dict(part.skipped_counts) for part in parts] == [{"not UTF-8": 1}, {"not UTF-8": 2}]
    assert parts[1].skipped[1].location.endswith("line 9")


def test_malformed_input_is_refused_with_its_line_after_the_parts_before_it(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_bytes(b"\n".join([*(text.encode() for text in TEXTS[:7]), b"\xff"]))
    parts = bertology.stream_corpus(file, part_size=3).parts()
    assert len(next(parts)) == len(next(parts)) == 3
    with pytest.raises(Refusal, match="line 8") as error:
        next(parts)
    assert "--skip-malformed" in str(error.value)


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(Refusal, match="a complete parquet file"):
        list(bertology.stream_corpus(file).parts())


def test_an_annotation_of_an_earlier_part_is_empty_and_not_absent_in_a_later_one(tmp_path: Path) -> None:
    columns = "1\tAda\tAda\tPROPN\t_\t_\t0\troot\t_\t{}\n\n"
    file = tmp_path / "corpus.conllu"
    file.write_text(columns.format("NER=B-PER") + columns.format("_"))
    first, second = bertology.stream_corpus(file, part_size=1).parts()
    assert first[0].segments[0].entities
    assert second[0].segments[0].entities == ()


@pytest.mark.parametrize("source", [["a text"], 3, "no-such-file.txt"])
def test_what_is_no_stream_is_refused(source: object) -> None:
    with pytest.raises(Refusal):
        bertology.stream_corpus(source)


def test_an_empty_file_and_wrong_options_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.write_text("\n")
    with pytest.raises(Refusal, match="contains no examples"):
        list(bertology.stream_corpus(file).parts())
    with pytest.raises(Refusal, match="part_size"):
        bertology.stream_corpus(file, part_size=0)
    with pytest.raises(Refusal, match="option of the format text"):
        bertology.stream_corpus(file, colour="red")
