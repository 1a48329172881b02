"""Read word vectors: GloVe text, word2vec text or binary, or a NumPy array with a Parquet index."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.input_files import GzipReader, load_array, open_plain, unpack_gzip, unreadable
from bertology.number_ranges import SIZE, parse_whole_number

Float32Array = NDArray[np.float32]

FILE_FORMATS = (
    "GloVe text, word2vec text, word2vec binary named .bin (all may be .gz), or an .npy array with a .parquet index"
)
MAX_LINE_BYTES = 10_000_000
HEADER_FORMAT = "a first line with the number of words and the vector size"


@dataclass(frozen=True, eq=False)
class WordVectorFile:
    """`matrix[index[word]]` is the vector of a word; row 0 is zeros and stands for unknown words.

    `duplicates` counts repeated words in the file, of which the first vector is used.
    """

    index: dict[str, int]
    matrix: Float32Array
    duplicates: int = 0

    def row(self, word: str) -> int:
        """The row of the word as written, else of its lower-cased form, else 0."""
        row = self.index.get(word)
        return self.index.get(word.lower(), 0) if row is None else row

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every word and number."""
        digest = hashlib.sha256()
        digest.update("\n".join(self.index).encode("utf-8", "surrogatepass"))
        digest.update(self.matrix.data)
        return digest.hexdigest()[:32]


def read_vectors(path: Path) -> WordVectorFile:
    """Read the word vectors in a file, or in a directory with one .npy and one .parquet file."""
    if path.is_dir() or path.suffix == ".npy":
        return _read_array(path)
    if not path.is_file():
        raise Refusal(f"There is no file {path}", FILE_FORMATS, "Check the path after `glove:`")
    if ".bin" in path.suffixes:
        return _read_binary(path)
    return _read_text(path)


def _read_binary(path: Path) -> WordVectorFile:
    """Read word2vec's binary format: a line with count and size, then each word, a space, and its 4-byte floats."""
    with open_plain(path) as stream:
        content = b"".join(unpack_gzip(path, stream)) if path.suffix == ".gz" else stream.read()
    first, _, body = content.partition(b"\n")
    header = _parse_header(first.decode("utf-8", "replace").rstrip(" \r"))
    if header is None:
        raise _malformed(path, 1, "is not a header", HEADER_FORMAT)
    count, size = header
    if count * (4 * size + 1) > len(body):
        raise _malformed(path, 1, f"announces {count} words, but fewer follow", "as many words as announced")
    index: dict[str, int] = {}
    matrix = np.zeros((count + 1, size), np.float32)
    start = 0
    for number in range(count):
        space = body.find(b" ", start)
        end = space + 1 + 4 * size
        if space < 0 or end > len(body):
            raise _malformed(path, 1, f"announces {count} words, but {number} follow", "as many words as announced")
        # Some writers end each vector with a line break, others do not.
        word = body[start:space].decode("utf-8", "replace").lstrip("\n")
        if word not in index:
            index[word] = len(index) + 1
            matrix[index[word]] = np.frombuffer(body, "<f4", size, space + 1)
        start = end
    if not np.isfinite(matrix).all():
        raise _malformed(path, 1, "is followed by a number that is not finite", "finite 4-byte floats")
    return WordVectorFile(index, matrix[: len(index) + 1], count - len(index))


def _read_text(path: Path) -> WordVectorFile:
    lines = _read_lines(path)
    number, first = next(lines, (1, ""))
    header = _parse_header(first)
    index: dict[str, int] = {}
    duplicates = 0
    size = len(first.split(" ")) - 1 if header is None else header[1]
    if size < 1:
        raise _malformed(path, number, "has no numbers", "a word and its numbers, separated by single spaces")
    vectors: list[Float32Array] = [np.zeros(size, np.float32)]
    if header is None:
        vectors.append(_parse_vector(path, number, first, size, index))
    for number, line in lines:
        n_words = len(index)
        vector = _parse_vector(path, number, line, size, index)
        if len(index) > n_words:
            vectors.append(vector)
        else:
            duplicates += 1
    if header is not None and len(index) + duplicates != header[0]:
        raise _malformed(path, 1, f"announces {header[0]} words, but {len(index)} follow", "as many words as announced")
    return WordVectorFile(index, np.stack(vectors), duplicates)


def _parse_vector(path: Path, line_number: int, line: str, size: int, index: dict[str, int]) -> Float32Array:
    """The numbers of one line, its last `size` fields (a word may contain spaces); a new word gets the next row."""
    word, *numbers = line.rsplit(" ", size)
    if len(numbers) != size or not word:
        raise _malformed(
            path, line_number, f"has {len(numbers)} numbers", f"a word and {size} numbers, as in earlier lines"
        )
    try:
        vector = np.array(numbers, np.float32)
    except ValueError:
        raise _malformed(
            path, line_number, "contains a field that is not a number", f"a word and {size} numbers"
        ) from None
    if not np.isfinite(vector).all():
        raise _malformed(path, line_number, "contains a number that is not finite", f"a word and {size} finite numbers")
    index.setdefault(word, len(index) + 1)
    return vector


def _parse_header(line: str) -> tuple[int, int] | None:
    """Number of words and vector size if the line is a word2vec header."""
    fields = line.split(" ")
    if len(fields) != 2:
        return None
    count, size = parse_whole_number(fields[0]), parse_whole_number(fields[1], SIZE)
    return None if count is None or size is None else (count, size)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    with open_plain(path) as stream:
        content: Any = io.BufferedReader(GzipReader(path, stream)) if path.suffix == ".gz" else stream
        number = 0
        while line := content.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise _malformed(path, number, f"has more than {MAX_LINE_BYTES:,} bytes", "one word and its numbers")
            try:
                # word2vec ends each line with a space; GloVe separates fields by exactly one space.
                yield number, line.decode("utf-8").rstrip(" \r\n")
            except UnicodeDecodeError as error:
                raise _malformed(
                    path, number, "is not UTF-8", "text; a word2vec binary file must be named .bin"
                ) from error


def _malformed(path: Path, line_number: int, problem: str, expected: str) -> Refusal:
    return Refusal(
        f"Line {line_number} {problem}",
        expected,
        f"Correct the file or copy it again; formats: {FILE_FORMATS}",
        location=str(path),
    )


def _read_array(path: Path) -> WordVectorFile:
    array_file, index_file = _array_and_index(path)
    vectors, words = load_array(array_file, FILE_FORMATS), _read_index(index_file)
    is_real = vectors.dtype.kind in "fiu"
    if not is_real or vectors.ndim != 2 or len(vectors) != len(words) or not np.isfinite(vectors).all():
        raise Refusal(
            f"{array_file} has shape {vectors.shape} and {index_file.name} names {len(words)} words",
            "one row of finite numbers per word",
            "Copy both files again",
        )
    index: dict[str, int] = {}
    for row, word in enumerate(words, 1):
        index.setdefault(word, row)
    matrix = np.zeros((len(vectors) + 1, vectors.shape[1]), np.float32)
    matrix[1:] = vectors
    return WordVectorFile(index, matrix, len(words) - len(index))


def _array_and_index(path: Path) -> tuple[Path, Path]:
    folder = path if path.is_dir() else path.parent
    arrays = sorted(folder.glob("*.npy")) if path.is_dir() else [path]
    indices = sorted(folder.glob("*.parquet"))
    if len(arrays) != 1 or len(indices) != 1 or not arrays[0].is_file():
        raise Refusal(
            f"{path} leads to {len(arrays)} .npy and {len(indices)} .parquet files",
            "one array and one index in its directory",
            "Name a directory with just these two files",
        )
    return arrays[0], indices[0]


def _read_index(file: Path) -> list[str]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise Refusal(
            f"{file} is a Parquet file, and pyarrow is not installed",
            "pyarrow",
            "Install it with `pip install bertology[frames]`",
        ) from error
    with open_plain(file) as stream:
        try:
            columns: Any = parquet.read_table(stream)
        except Exception as error:  # pyarrow raises many kinds of errors for damaged files
            raise unreadable(file, error, "an index with one word per row") from error
    names = [
        name for name in columns.schema.names if str(columns.schema.field(name).type) in {"string", "large_string"}
    ]
    if not names:
        raise Refusal(f"{file} has no text column", "an index with one word per row", "Copy both files again")
    try:
        return [str(word) for word in columns.column(names[0]).to_pylist()]
    except UnicodeDecodeError as error:
        raise unreadable(file, error, "words in UTF-8") from error
