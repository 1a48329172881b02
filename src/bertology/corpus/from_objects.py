"""Corpora from Python objects: texts, pairs, words with labels, data frames, datasets, spaCy documents, CoNLL-U text.

Frames and datasets are recognised by their attributes, so that their libraries are imported only by those who use them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example
from bertology.corpus.read import DATASETS_PREFIX, is_corpus_name, load_corpus
from bertology.corpus.readers.conllu import conllu_examples
from bertology.corpus.rows import Row, find_columns, parse_rows
from bertology.corpus.sentence import Sentence, WordSplitting, split_words
from bertology.corpus.spacy_docs import doc_examples, is_doc
from bertology.corpus.tabular_files import N_SAMPLE_ROWS
from bertology.corpus.text_files import ParseError, ParseErrorHandler, group_lines, parse_all
from bertology.errors import Refusal

ACCEPTED = (
    "a list of texts, of pairs (tuples of two texts), of lists of words, of dictionaries or of spaCy Docs; a pandas or "
    "polars frame; a dataset of the library datasets; or CoNLL-U text"
)
Names = str | Sequence[str]
LabelValues = Names | Sequence[object] | Mapping[str, Sequence[object]]


class RowTable(NamedTuple):
    """Rows with named columns, the names of classes by column, and the format and name of the source."""

    rows: Iterable[Row]
    class_names: Mapping[str, Sequence[str]]
    format: str
    name: str


def build_corpus(
    data: object,
    *,
    text: str = "",
    pair: Names = (),
    words: str = "",
    word_labels: LabelValues = (),
    span_labels: LabelValues = (),
    label: LabelValues = (),
    name: str = "",
    word_splitting: WordSplitting = "text",
    limit: int | None = None,
    skip_malformed: bool = False,
) -> Corpus:
    """Make a corpus from Python objects; this is `bertology.corpus`.

    | data | examples |
    |---|---|
    | list of strings | each string is a sentence |
    | list of tuples of two strings | pairs |
    | list of lists of strings | sentences of words; with tuples (words, labels) also word labels |
    | list of dictionaries, dictionary of lists, pandas or polars frame, `datasets.Dataset` | rows with named columns |
    | spaCy Doc, or a list of them | sentences with the annotations of spaCy |
    | string with CoNLL-U lines | sentences with their trees |

    In rows, `text`, `pair` (two names), `words`, `word_labels`, `span_labels` and `label` (a name, or several) name
    columns; without them columns are recognised by name, and all short values are labels under the names of their
    columns. Beside lists of texts, pairs or words, `label` are the values, one per example, or a dictionary of such
    lists by name; `word_labels` and `span_labels` are dictionaries of lists, one list per example. Malformed rows are
    refused, or with `skip_malformed` counted; `limit` is the maximum number of examples.
    """
    if isinstance(data, Corpus):
        return data[:limit]
    errors = ParseErrorHandler(skip_malformed=skip_malformed)
    if isinstance(data, str | Path):
        return _corpus_from_string(data, name, errors, limit)
    pair = pair.split(",") if isinstance(pair, str) else pair
    columns = {"text": text, "words": words}
    table = as_table(data)
    items: list[object] = []
    if table is None:
        items = _as_list(data, limit)
        if all(is_doc(item) for item in items):
            source = Path(name or "spaCy documents")
            return _corpus(doc_examples(items, source, errors), name or "spaCy", "spacy", errors, limit)
        if all(isinstance(item, Example) for item in items):
            return Corpus(tuple(cast("list[Example]", items)), name=name or "corpus")
        if all(isinstance(item, Sentence) for item in items):
            return corpus_from_sentences(cast("list[Sentence]", items), name=name or "corpus")
        if all(_is_text(item) or _is_pair(item) for item in items):
            _refuse_columns(columns | {"pair": pair, "word_labels": word_labels, "span_labels": span_labels})
            examples = _text_examples(items, label, word_splitting, Path(name or "list"), errors)
            return _corpus(examples, name or "text", "", errors, limit)
        if all(isinstance(item, Mapping) for item in items):
            table = RowTable(cast("list[Row]", items), {}, "rows", "rows")
        else:
            _refuse_columns(columns | {"pair": pair})
            table = _word_table(items, word_labels, span_labels, label)
            word_labels = span_labels = label = ()
            columns["words"] = "words"
    examples = table_examples(
        table,
        Path(name or table.name),
        errors,
        pair=pair,
        word_labels=word_labels,
        span_labels=span_labels,
        label=label,
        word_splitting=word_splitting,
        limit=limit,
        **columns,
    )
    return _corpus(examples, name or table.name, table.format, errors, limit)


def table_examples(
    table: RowTable,
    source: Path,
    errors: ParseErrorHandler,
    *,
    text: str = "",
    pair: Names = (),
    words: str = "",
    word_labels: LabelValues = (),
    span_labels: LabelValues = (),
    label: LabelValues = (),
    word_splitting: WordSplitting = "text",
    limit: int | None = None,
) -> Iterator[Example]:
    """Yield at most `limit` examples of the rows of a table, which are read as they are needed."""
    rows = iter(table.rows)
    try:
        sample = list(islice(rows, N_SAMPLE_ROWS if limit is None else min(limit, N_SAMPLE_ROWS)))
        if not sample:
            raise Refusal(f"{source} contains no rows", "at least one row", "Check the data, or its split")
        selected = find_columns(
            sample,
            text=text,
            pair=tuple(pair.split(",") if isinstance(pair, str) and pair else pair),
            words=words,
            word_labels=_names("word_labels", word_labels),
            span_labels=_names("span_labels", span_labels),
            label=_names("label", label),
        )
        numbered = enumerate(chain(sample, rows), start=1)
        options: dict[str, Any] = {"class_names": table.class_names, "word_splitting": word_splitting}
        yield from islice(parse_rows(numbered, selected, source, errors, **options), limit)
    finally:
        if isinstance(rows, Generator):  # files of a streamed dataset, read up to the limit
            rows.close()


def load_dataset_corpus(address: str, **options: Any) -> Corpus:
    """The corpus at `datasets:NAME[@CONFIGURATION][:SPLIT]`, a data set of the Hugging Face hub or a directory."""
    data, name = load_dataset(address, streaming=options.get("limit") is not None)
    named: dict[str, Any] = {"name": name, **options}
    return build_corpus(data, **named)


def load_dataset(address: str, *, streaming: bool) -> tuple[Any, str]:
    """The data set at an address, and its name; with `streaming` its rows are read when they are needed."""
    try:
        import datasets
    except ImportError as error:
        raise Refusal(
            f"{address} needs the library datasets, which is not installed",
            "the library datasets",
            "Install it with `pip install 'bertology[datasets]'`, or give a file",
        ) from error

    location, _, split = address.removeprefix(DATASETS_PREFIX).partition(":")
    hub_name, _, configuration = location.partition("@")
    library: Any = datasets
    try:
        data = library.load_dataset(hub_name, configuration or None, split=split or None, streaming=streaming)
    except Exception as error:
        raise Refusal(
            f"{address} cannot be loaded ({type(error).__name__}: {str(error).splitlines()[0][:200]})",
            f"{DATASETS_PREFIX}NAME[@CONFIGURATION][:SPLIT], the name of a data set that can be reached",
            "Check the name, the configuration, the split and the network",
        ) from error
    return data, ":".join(filter(None, (location.rsplit("/", 1)[-1], split)))


def _corpus(
    examples: Iterable[Example], name: str, format: str, errors: ParseErrorHandler, limit: int | None
) -> Corpus:
    selected = tuple(islice(examples, limit))
    if not selected:
        skipped = f" ({len(errors.skipped)} skipped)" if errors.skipped else ""
        raise Refusal(f"{name} contains no examples{skipped}", "at least one example", "Check the data")
    return Corpus(selected, name=name, format=format, skipped=tuple(errors.skipped))


def _corpus_from_string(data: str | Path, name: str, errors: ParseErrorHandler, limit: int | None) -> Corpus:
    """CoNLL-U text, or the corpus at a path or of a name; other strings are refused, as they may be mistyped names."""
    if isinstance(data, str) and _is_conllu(data):
        numbered = enumerate(data.splitlines(), start=1)
        source = Path(name or "CoNLL-U text")
        examples = conllu_examples(source, errors, group_lines(numbered))
        return _corpus(examples, name or "CoNLL-U", "conllu", errors, limit)
    if not is_corpus_name(str(data)):
        raise Refusal(
            f"The string {str(data)[:60]!r} is neither CoNLL-U text nor the name or path of a corpus",
            ACCEPTED,
            "Put a single text into a list: bertology.corpus([text])",
        )
    return load_corpus(str(data), limit=limit, skip_malformed=errors.skip_malformed)


def _is_conllu(text: str) -> bool:
    """Whether the first line that is not a comment has the ten columns of CoNLL-U."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    cells = next(lines, "").split("\t")
    return len(cells) == 10 and cells[0].split("-")[0].isdecimal()


def as_table(data: object) -> RowTable | None:
    """The rows of a frame, dataset or dictionary of lists; None for anything else."""
    value = cast(Any, data)
    if isinstance(data, Mapping):
        return _table_of_mapping(cast("Mapping[str, object]", data))
    if hasattr(value, "features") and hasattr(value, "__iter__"):
        features = value.features
        info = getattr(value, "info", None)
        name = str(getattr(info, "dataset_name", None) or "dataset")
        return RowTable(value, _class_names(features), "datasets", name)
    if hasattr(value, "collect") and hasattr(value, "collect_schema"):
        value = value.collect()
    if hasattr(value, "iter_rows") and hasattr(value, "columns"):
        return RowTable(value.iter_rows(named=True), {}, "frame", "frame")
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        rows = ({str(key): item for key, item in row.items()} for row in value.to_dict("records"))
        return RowTable(rows, {}, "frame", "frame")
    if hasattr(value, "column_names") and hasattr(value, "to_pylist"):
        return RowTable(value.to_pylist(), {}, "frame", "table")
    return None


def _table_of_mapping(data: Mapping[str, object]) -> RowTable:
    splits = [name for name, value in data.items() if hasattr(value, "features")]
    if splits:
        raise Refusal(
            f"The dataset has the splits {', '.join(splits)}",
            "one of them",
            f"Choose a split, for example bertology.corpus(data[{splits[0]!r}])",
        )
    columns = {str(name): _values(value) for name, value in data.items()}
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if not columns or len(lengths) < len(columns) or len(set(lengths.values())) > 1:
        raise Refusal(
            f"The dictionary has the keys {', '.join(columns) or '(none)'}, whose values are not lists of equal length",
            "a dictionary of columns: lists of equal length by name",
            "Give a list of dictionaries for rows, or lists of equal length for columns",
        )
    filled = {name: values for name, values in columns.items() if values is not None}
    rows = [dict(zip(filled, row, strict=True)) for row in zip(*filled.values(), strict=True)]
    return RowTable(rows, {}, "rows", "rows")


def _class_names(features: Any) -> dict[str, Sequence[str]]:
    """The names of the classes of each column of classes or of lists of classes."""
    class_names: dict[str, Sequence[str]] = {}
    for column, feature in (cast("Mapping[str, Any]", features) if isinstance(features, Mapping) else {}).items():
        for candidate in (feature, getattr(feature, "feature", None)):
            names = getattr(candidate, "names", None)
            if isinstance(names, list):
                class_names[column] = cast("list[str]", names)
    return class_names


def _as_list(data: object, limit: int | None) -> list[object]:
    if is_doc(data) or isinstance(data, Example | Sentence):
        return [data]
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise Refusal(
            f"A corpus was given as {type(data).__name__} ({str(data)[:40]!r})",
            ACCEPTED,
            "Convert the data, or read a file with bertology.read",
        )
    items = list(islice(cast("Iterable[object]", data), limit))
    if not items:
        raise Refusal("A corpus was given as an empty list", ACCEPTED, "Check the data")
    return items


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)


def _text_examples(
    items: list[object], label: LabelValues, word_splitting: WordSplitting, source: Path, errors: ParseErrorHandler
) -> Iterator[Example]:
    values, named = _label_values(label, len(items))

    def parse(line: int, item: object) -> Example:
        texts = (item,) if isinstance(item, str) else cast("tuple[str, str]", item)
        if not all(text.strip() for text in texts):
            raise ParseError("missing text", "The text is empty", "a text", "Remove it")
        segments = tuple(split_words(text, word_splitting) for text in texts)
        labels = {name: str(column[line - 1]) for name, column in named.items() if column[line - 1] is not None}
        gold = None if values is None or values[line - 1] is None else str(values[line - 1])
        if len(segments) == 1:
            segments = (replace(segments[0], label=gold),)
        kind = "sentence" if len(segments) == 1 else "pair"
        return Example(segments, kind, gold, str(line), labels=MappingProxyType(labels))

    return parse_all(source, errors, enumerate(items, start=1), parse)


def _label_values(label: LabelValues, n_examples: int) -> tuple[Sequence[object] | None, dict[str, list[object]]]:
    """The labels of the examples, and those by name; as many as there are examples."""
    if isinstance(label, str):
        raise Refusal(
            f"label={label!r} names a column, and a list of texts has none",
            "one label per text, or a dictionary of such lists by name",
            "Give label=[...] or label={'name': [...]}",
        )
    named = {name: _values(values) for name, values in label.items()} if isinstance(label, Mapping) else {}
    values = None if isinstance(label, Mapping) else (_values(label) or None)
    for name, column in {"label": values, **named}.items():
        if column is None and name == "label" and name not in named:
            continue
        if column is None or len(column) != n_examples:
            raise Refusal(
                f"There are {n_examples} examples and {0 if column is None else len(column)} values of {name}",
                "one label per example",
                "Give lists of equal length",
            )
    return values, {name: column for name, column in named.items() if column is not None}


def _word_table(
    items: list[object], word_labels: LabelValues, span_labels: LabelValues, label: LabelValues
) -> RowTable:
    """Lists of words, or tuples of words and labels, as rows."""
    rows: list[dict[str, object]] = []
    label_name = word_labels if isinstance(word_labels, str) else "tags"
    for item in items:
        parts = list(cast("Sequence[object]", item)) if isinstance(item, list | tuple) else []
        has_labels = isinstance(item, tuple) and len(parts) == 2 and all(isinstance(p, list | tuple) for p in parts)
        words = cast("Sequence[object]", parts[0]) if has_labels else parts if isinstance(item, list) else ()
        if not words or not all(isinstance(word, str) for word in words):
            unknown = next((other for other in items if not isinstance(other, str)), item)
            problem = f"The corpus contains {str(unknown)[:60]!r} ({type(unknown).__name__})"
            raise Refusal(problem, ACCEPTED, "Convert it, or name the columns of a frame or a list of dictionaries")
        if not has_labels and len(words) > 1 and all(" " in str(word).strip() for word in words):
            raise Refusal(
                f"The list {str(item)[:60]} has texts of several words where words are expected",
                ACCEPTED,
                "Make tuples of pairs, (first, second), or one list of all texts",
            )
        rows.append({"words": words, **({label_name: parts[1]} if has_labels else {})})
    values, named = _label_values(label, len(rows))
    columns = named | ({"label": list(values)} if values is not None else {})
    for labels in (word_labels, span_labels):
        if isinstance(labels, Mapping):
            columns |= _label_values(labels, len(rows))[1]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            row[name] = value
    return RowTable(rows, {}, "words", "words")


def _values(value: object) -> list[object] | None:
    """The values of a list, array or series; None for anything else."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return None
    return list(cast("Iterable[object]", value))


def _names(option: str, value: LabelValues) -> tuple[str, ...]:
    """The names of columns given for an option."""
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise Refusal(
            f"{option} was given values, and the data has named columns", "names of columns", f"Name them in {option}"
        )
    return tuple(cast("Sequence[str]", value))


def _refuse_columns(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise Refusal(
                f"{name}={value!r} was given, and a list of texts or words has no columns",
                "a frame, a dataset or a list of dictionaries",
                f"Leave out {name}, or give rows with named columns",
            )
