"""Tables of word vectors from files: GloVe text, word2vec text or binary, or a NumPy array with a Parquet index."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal

Floats = NDArray[np.float32]

FORMS = (
    "GloVe text, word2vec text, word2vec binary named .bin (all may be .gz), or an .npy array beside a .parquet index"
)
HEADER = "a first line with the number of words and their size"


@dataclass(frozen=True, eq=False)
class WordVectors:
    """`table[rows[word]]` is the vector of a word; row 0 is all zeros and stands for every word that is not there.

    `duplicates` counts words the file gives twice: the first vector is kept.
    """

    rows: dict[str, int]
    table: Floats
    duplicates: int = 0

    def row(self, word: str) -> int:
        """The row of the word as it is written, else of its lower-cased form, else 0."""
        found = self.rows.get(word)
        return self.rows.get(word.lower(), 0) if found is None else found

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every word and number."""
        digest = hashlib.sha256()
        digest.update("\n".join(self.rows).encode("utf-8", "surrogatepass"))
        digest.update(self.table.data)
        return digest.hexdigest()[:32]


def read_vectors(path: Path) -> WordVectors:
    """The word vectors in a file, or in a directory that holds one .npy and one .parquet file."""
    if path.is_dir() or path.suffix == ".npy":
        return _from_array(path)
    if not path.is_file():
        raise Refusal(f"There is no file {path}", FORMS, "Check the path after `glove:`")
    if ".bin" in path.suffixes:
        return _from_binary(path)
    return _from_text(path)


def _from_binary(path: Path) -> WordVectors:
    """word2vec's binary form: a line with count and size, then each word, a space, and its numbers in 4 bytes each."""
    with path.open("rb") as file, gzip.open(file) if path.suffix == ".gz" else file as stream:
        try:
            content = stream.read()
        except (EOFError, gzip.BadGzipFile) as error:
            raise _malformed(path, 1, f"is where the gzip stream breaks off ({error})", "a whole file") from error
    first, _, body = content.partition(b"\n")
    announced = _header(first.decode("utf-8", "replace").rstrip(" \r"))
    if announced is None:
        raise _malformed(path, 1, "is no header", HEADER)
    count, size = announced
    if count * (4 * size + 1) > len(body):
        raise _malformed(path, 1, f"announces {count} words and fewer follow", "as many as it announces")
    rows: dict[str, int] = {}
    table = np.zeros((count + 1, size), np.float32)
    place = 0
    for number in range(1, count + 1):
        space = body.find(b" ", place)
        end = space + 1 + 4 * size
        if space < 0 or end > len(body):
            raise _malformed(path, 1, f"announces {count} words and {number - 1} follow", "as many as it announces")
        # Some writers end each vector with a line break, others do not.
        word = body[place:space].decode("utf-8", "replace").lstrip("\n")
        if word not in rows:
            rows[word] = len(rows) + 1
            table[rows[word]] = np.frombuffer(body, "<f4", size, space + 1)
        place = end
    if not np.isfinite(table).all():
        raise _malformed(path, 1, "is followed by a number that is not finite", "finite numbers in 4 bytes each")
    return WordVectors(rows, table[: len(rows) + 1], count - len(rows))


def _from_text(path: Path) -> WordVectors:
    lines = _lines(path)
    number, first = next(lines, (1, ""))
    announced = _header(first)
    rows: dict[str, int] = {}
    duplicates = 0
    if announced is None:
        size = len(first.split(" ")) - 1
        if size < 1:
            raise _malformed(path, number, "has no numbers", "a word and its numbers, separated by single spaces")
        found = [_vector(path, number, first, size, rows)]
    else:
        size = announced[1]
        found = []
    vectors: list[Floats] = [np.zeros(size, np.float32), *found]
    for number, line in lines:
        word_count = len(rows)
        vector = _vector(path, number, line, size, rows)
        if len(rows) > word_count:
            vectors.append(vector)
        else:
            duplicates += 1
    if announced is not None and len(rows) + duplicates != announced[0]:
        raise _malformed(
            path, 1, f"announces {announced[0]} words and {len(rows)} follow", "as many words as it announces"
        )
    return WordVectors(rows, np.stack(vectors), duplicates)


def _vector(path: Path, number: int, line: str, size: int, rows: dict[str, int]) -> Floats:
    """The numbers of one line, its last `size` fields (a word may hold spaces); the word gets the next row."""
    word, *numbers = line.rsplit(" ", size)
    if len(numbers) != size or not word:
        raise _malformed(
            path, number, f"has {len(numbers)} numbers", f"a word and {size} numbers, as in the lines before"
        )
    try:
        vector = np.array(numbers, np.float32)
    except ValueError:
        raise _malformed(path, number, "holds something that is not a number", f"a word and {size} numbers") from None
    if not np.isfinite(vector).all():
        raise _malformed(path, number, "holds a number that is not finite", f"a word and {size} finite numbers")
    rows.setdefault(word, len(rows) + 1)
    return vector


def _header(line: str) -> tuple[int, int] | None:
    """Words and size, where the first line is a word2vec header."""
    fields = line.split(" ")
    if len(fields) == 2 and all(field.isdecimal() for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    with path.open("rb") as file, gzip.open(file) if path.suffix == ".gz" else file as stream:
        try:
            for number, line in enumerate(stream, 1):
                # word2vec ends each line with a space; the separator of GloVe is always one plain space.
                yield number, line.decode("utf-8").rstrip(" \r\n")
        except (EOFError, gzip.BadGzipFile) as error:
            raise _malformed(
                path, number + 1, f"is where the gzip stream breaks off ({error})", "a whole file"
            ) from error
        except UnicodeDecodeError as error:
            raise _malformed(path, number, "is not UTF-8", "text; word2vec's binary form must be named .bin") from error


def _malformed(path: Path, number: int, found: str, expected: str) -> Refusal:
    return Refusal(
        f"Line {number} {found}", expected, f"Correct the file or copy it again; read here are {FORMS}", where=str(path)
    )


def _from_array(path: Path) -> WordVectors:
    array_file, index_file = _array_and_index(path)
    try:
        table = np.load(array_file, allow_pickle=False)
        words = _index(index_file)
    except (OSError, ValueError, EOFError) as error:
        raise Refusal(
            f"{array_file} with {index_file.name} is not readable ({error})", FORMS, "Copy both files again"
        ) from error
    if table.ndim != 2 or len(table) != len(words) or not np.isfinite(table).all():
        raise Refusal(
            f"{array_file} has shape {table.shape} and {index_file.name} names {len(words)} words",
            "one row of finite numbers a word",
            "Copy both files again",
        )
    rows: dict[str, int] = {}
    for row, word in enumerate(words, 1):
        rows.setdefault(word, row)
    with_zeros = np.zeros((len(table) + 1, table.shape[1]), np.float32)
    with_zeros[1:] = table
    return WordVectors(rows, with_zeros, len(words) - len(rows))


def _array_and_index(path: Path) -> tuple[Path, Path]:
    folder = path if path.is_dir() else path.parent
    arrays = sorted(folder.glob("*.npy")) if path.is_dir() else [path]
    indices = sorted(folder.glob("*.parquet"))
    if len(arrays) != 1 or len(indices) != 1 or not arrays[0].is_file():
        raise Refusal(
            f"{path} leads to {len(arrays)} .npy and {len(indices)} .parquet files",
            "one array and one index beside it",
            "Name a directory that holds just these two",
        )
    return arrays[0], indices[0]


def _index(file: Path) -> list[str]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise Refusal(
            f"{file} is a Parquet file, and pyarrow is not installed",
            "pyarrow, to read it",
            "Install it with `pip install bertology[frames]`",
        ) from error
    columns: Any = parquet.read_table(file)
    text = [name for name in columns.schema.names if str(columns.schema.field(name).type) in {"string", "large_string"}]
    if not text:
        raise Refusal(f"{file} has no column of text", "an index: one word a row", "Copy both files again")
    return [str(word) for word in columns.column(text[0]).to_pylist()]
