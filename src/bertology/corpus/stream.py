"""Corpora larger than memory: read in parts of a fixed number of examples, once, and identified while they are read.

A part is an ordinary small corpus. The fingerprint of the whole is that of the same examples read at once, whatever the
size of the parts (unless an annotation that a format writes only where it applies first occurs in a later part).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.from_objects import RowTable, as_table, load_dataset, table_examples
from bertology.corpus.read import DATASETS_PREFIX, fill_optional_annotations, find_files, find_reader
from bertology.corpus.text_files import ParseErrorHandler
from bertology.errors import Refusal
from bertology.input_files import open_plain, path_exists, shorten_name, unreadable
from bertology.number_ranges import COUNT

PART_SIZE = 5_000
PARQUET = ".parquet"
PARQUET_ROWS = 1_000
"""Rows of a parquet file that are read at a time."""


@dataclass(frozen=True)
class CorpusStream:
    """A corpus that is read in parts of `part_size` examples; `read` yields its examples from the beginning."""

    name: str
    format: str
    read: Callable[[ParseErrorHandler], Iterator[Example]]
    part_size: int = PART_SIZE
    skip_malformed: bool = False
    single_spaces: bool = False

    def __repr__(self) -> str:
        return f"CorpusStream({self.name!r}, parts of {self.part_size} examples)"

    def with_single_spaces(self) -> CorpusStream:
        """Return the stream with single spaces between words."""
        return replace(self, single_spaces=True)

    def parts(self) -> Iterator[Corpus]:
        """Yield the parts, each read when it is asked for; malformed input is refused where it occurs, or counted."""
        errors = ParseErrorHandler(skip_malformed=self.skip_malformed)
        examples = self.read(errors)
        present: set[str] = set()
        following = next(examples, None)
        if following is None:
            skipped = f" ({len(errors.skipped)} skipped)" if errors.skipped else ""
            raise Refusal(
                f"{self.name} contains no examples{skipped}",
                "at least one example",
                "Check that the source is not empty and that --format names its format",
            )
        while following is not None:
            part = fill_optional_annotations((following, *islice(examples, self.part_size - 1)), present)
            following = next(examples, None)  # now what was skipped before it, or at the end, is known
            corpus = Corpus(part, name=self.name, format=self.format, skipped=tuple(errors.skipped))
            errors.skipped.clear()
            yield corpus.with_single_spaces() if self.single_spaces else corpus
            del part, corpus  # before the next part is read


def stream_corpus(
    source: Any,
    format: str | None = None,
    *,
    part_size: Annotated[int, COUNT] = PART_SIZE,
    skip_malformed: bool = False,
    limit: Annotated[int | None, COUNT] = None,
    **options: Any,
) -> CorpusStream:
    """A corpus that is read in parts, for `bertology.record`: memory does not grow with its size.

    The source is a file in any format of `bertology.read` (text, CoNLL-U and tables are read line by line), a parquet
    file or a directory of them, `datasets:NAME:SPLIT`, or a data set of the library datasets. For rows with named
    columns, `options` name columns as in `bertology.corpus`. `limit` is the maximum number of examples.
    """
    settings: dict[str, Any] = {"part_size": part_size, "skip_malformed": skip_malformed}
    if isinstance(source, str) and source.startswith(DATASETS_PREFIX) and not path_exists(source):
        data, name = load_dataset(source, streaming=True)
        return _stream_table(lambda: as_table(data), name, limit, options, settings)
    if not isinstance(source, str | Path):
        table = as_table(source)
        if table is None or table.format != "datasets":
            raise Refusal(
                f"A stream was given as {type(source).__name__}",
                "a path, datasets:NAME:SPLIT, or a data set of the library datasets",
                "Give what is in memory to bertology.corpus",
            )
        return _stream_table(lambda: as_table(source), table.name, limit, options, settings)
    path = Path(source)
    if not path_exists(path):
        raise Refusal(f"{shorten_name(path)} does not exist", "a file, or datasets:NAME:SPLIT", "Check the path")
    files = find_files(path, rf".*\{PARQUET}")
    if path.suffix == PARQUET or (path.is_dir() and files and format is None):
        return _stream_table(lambda: _parquet_table(files, path.name), path.name, limit, options, settings)
    format_reader = find_reader(path, format, options)

    def read(errors: ParseErrorHandler) -> Iterator[Example]:
        return islice(format_reader.function(path, errors, **options), limit)

    return CorpusStream(path.name, format_reader.name, read, **settings)


def _stream_table(
    open_table: Callable[[], RowTable | None],
    name: str,
    limit: int | None,
    columns: dict[str, Any],
    settings: dict[str, Any],
) -> CorpusStream:
    table = open_table()
    if table is None or hasattr(table.rows, "keys"):
        raise Refusal(f"{name} has no rows", "one split of a data set", "Name the split: datasets:NAME:SPLIT")

    def read(errors: ParseErrorHandler) -> Iterator[Example]:
        opened = open_table()
        assert opened is not None, "it was a table before"
        return table_examples(opened, Path(name), errors, limit=limit, **columns)

    return CorpusStream(name, table.format, read, **settings)


def _parquet_table(files: list[Path], name: str) -> RowTable:
    """The rows of parquet files, a batch at a time."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise Refusal(
            f"{name} needs the library pyarrow, which is not installed",
            "the library pyarrow",
            "Install it with `pip install 'bertology[frames]'`, or give a text file",
        ) from error
    library: Any = parquet

    def rows() -> Iterator[dict[str, object]]:
        n_rows = 0
        for file in files:
            try:
                with open_plain(file) as stream, library.ParquetFile(stream) as table:
                    for batch in table.iter_batches(batch_size=PARQUET_ROWS):
                        yield from batch.to_pylist()
                        n_rows += len(batch)
            except (OSError, ValueError) as error:  # the errors of pyarrow are kinds of these
                raise Refusal(
                    unreadable(file, error).problem,
                    "a complete parquet file",
                    "Copy the file again",
                    location=f"{name}, after row {n_rows}",
                ) from error

    return RowTable(rows(), {}, "parquet", name)
