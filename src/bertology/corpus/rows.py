"""Rows with named columns as examples: data frames, datasets, lists of dictionaries, JSON lines and tables of words.

Columns are named by the caller or recognised by name: words (a list), a pair of texts, or a text. Every other column of
short values is a label of the example under the name of the column. In rows of words, lists with one value per word are
word labels, and lists of spans (start, end, label) are span labels; BIO tags give spans too, and columns named after an
annotation (pos, lemma, ner, chunk ...) also give that annotation. Class numbers are replaced by the names of classes
where the source has them; -1, which hidden test sets use, is no label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from bertology.corpus.bio import Scheme, decode, detect_scheme, is_tag
from bertology.corpus.character_spans import word_span
from bertology.corpus.example import Example
from bertology.corpus.readers import labelled, pairs
from bertology.corpus.sentence import Sentence, Span, WordSplitting, locate_words, sentence_from_words, split_words
from bertology.corpus.tabular_files import MAX_LABEL_LENGTH, WORDS
from bertology.corpus.text_files import ParseError, ParseErrorHandler, parse_all
from bertology.errors import Refusal, unknown_name

Row = Mapping[str, object]
ClassNames = Mapping[str, Sequence[str]]
N_SAMPLE_SENTENCES = 2000
UNLABELLED = -1
"""The class number of examples without a label."""

ANNOTATION_OF_COLUMN = {
    "pos": "pos", "upos": "pos", "pos_tags": "pos", "xpos": "xpos", "lemma": "lemmas", "lemmas": "lemmas",
    "tag": "tags", "tags": "tags",
}  # fmt: skip
SPAN_ANNOTATION_OF_COLUMN = {
    "ner": "entities", "ner_tags": "entities", "entity": "entities", "entities": "entities",
    "chunk": "chunks", "chunks": "chunks", "chunk_tags": "chunks",
}  # fmt: skip
"""Names of columns of words or BIO tags, and the annotation of a sentence that they give."""


@dataclass(frozen=True)
class RowColumns:
    """The names of the columns that are read; `labels` are those of examples, `ignored` those of other values."""

    text: str = ""
    pair: tuple[str, str] | None = None
    words: str = ""
    word_labels: tuple[str, ...] = ()
    span_labels: tuple[str, ...] = ()
    label: str = ""
    labels: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def find_columns(
    sample: Sequence[Row],
    *,
    text: str = "",
    pair: Sequence[str] = (),
    words: str = "",
    word_labels: Sequence[str] = (),
    span_labels: Sequence[str] = (),
    label: Sequence[str] = (),
) -> RowColumns:
    """The columns that the caller names, and those recognised by their names or the values of the first rows.

    The first name in `label` is the label of the examples; without names, all columns of short values are labels.
    """
    names = list(dict.fromkeys(name for row in sample for name in row))
    for name in filter(None, (text, *pair, words, *word_labels, *span_labels, *label)):
        if name not in names:
            raise unknown_name("column", name, names)
    if len(pair) not in (0, 2) or [bool(text and not words), bool(pair), bool(words)].count(True) > 1:
        raise Refusal(
            "The columns to read are ambiguous",
            "the name of a column of texts, of two columns of a pair, or of a column of words",
            "Name them, for example text='sentence', pair=('premise', 'hypothesis') or words='tokens'",
        )
    lower = {name.lower(): name for name in reversed(names)}
    if not (text or pair or words):
        words = next((lower[n] for n in WORDS if n in lower and _are_lists(sample, lower[n])), "")
        pair = next((p for p in pairs.PAIRS if all(n in lower for n in p)), ()) if not words else ()
        pair = tuple(lower[name] for name in pair)
        if not words and not pair:
            text = next((lower[n] for n in labelled.TEXTS if n in lower), names[0] if len(names) == 1 else "")
    if not (text or pair or words):
        raise Refusal(
            f"None of the columns {', '.join(names)} is recognised as text",
            f"a column such as {', '.join(labelled.TEXTS[:3])}, {' and '.join(pairs.PAIRS[0])}, or {WORDS[0]}",
            "Name it, for example text='column', pair=('first', 'second') or words='column'; in a file with "
            "--format-option text=COLUMN",
        )
    others = [name for name in names if name not in {text, *pair, words, *word_labels, *span_labels, *label}]
    if words and not word_labels:
        word_labels = [name for name in others if _are_word_labels(sample, name, words)]
    if not span_labels:
        span_labels = [name for name in others if name not in word_labels and _are_spans(sample, name)]
    label_columns = label or [name for name in others if _are_labels(sample, name)]
    candidates = pairs.LABELS if pair else labelled.LABELS
    gold = label[0] if label else next((lower[n] for n in candidates if lower.get(n) in label_columns), "")
    read = {text, *pair, words, *word_labels, *span_labels, *label_columns}
    unread = [] if label else [name for name in names if name not in read]  # named labels are all that is wanted
    return RowColumns(
        text,
        (pair[0], pair[1]) if pair else None,
        words,
        tuple(word_labels),
        tuple(span_labels),
        gold,
        tuple(label_columns),
        tuple(unread),
    )


def parse_rows(
    rows: Iterable[tuple[int, Row]],
    columns: RowColumns,
    source: Path,
    errors: ParseErrorHandler,
    *,
    class_names: ClassNames | None = None,
    word_splitting: WordSplitting = "text",
) -> Iterator[Example]:
    """Yield one example per row, with the number of the row as id."""
    for name in columns.ignored:
        errors.count(source, None, f"column {name!r} not read (neither text nor short labels)")
    parse = partial(_to_example, columns, class_names or {}, word_splitting)
    examples = parse_all(source, errors, rows, parse)
    if not columns.word_labels:
        yield from examples
        return
    sample = list(islice(examples, N_SAMPLE_SENTENCES))
    schemes: dict[str, Scheme] = {}
    for name in columns.word_labels:
        scheme = _scheme(sample, name)
        if scheme is not None:
            schemes[name] = scheme
    numbered = ((int(example.id), example) for example in chain(sample, examples))
    yield from parse_all(source, errors, numbered, partial(_add_spans, schemes))


def _to_example(
    columns: RowColumns, class_names: ClassNames, word_splitting: WordSplitting, line: int, row: Row
) -> Example:
    values = {name: _label(row, name, class_names) for name in columns.labels}
    gold = values.get(columns.label) if columns.label else None
    named = {name: value for name, value in values.items() if value is not None and not _is_plain_label(name, columns)}
    labels = MappingProxyType(named)
    id = str(line)
    if columns.pair:
        segments = tuple(split_words(_text(row, name), word_splitting) for name in columns.pair)
        return Example(segments, "pair", gold, id, labels=labels)
    if columns.words:
        sentence = _sentence_of_words(row, columns, class_names, id)
    else:
        sentence = split_words(_text(row, columns.text), word_splitting, id=id)
    spans = {name: _spans(row, name, sentence, are_words=bool(columns.words)) for name in columns.span_labels}
    sentence = replace(sentence, label=gold, span_labels=MappingProxyType(spans))
    return Example((sentence,), label=gold, id=id, labels=labels)


def _is_plain_label(name: str, columns: RowColumns) -> bool:
    """Whether the column is the label of the examples, and its name says no more than that."""
    return name == columns.label and name == "label"


def _sentence_of_words(row: Row, columns: RowColumns, class_names: ClassNames, id: str) -> Sentence:
    words = [str(word) for word in _list(row, columns.words)]
    if not words or not all(word.strip() for word in words):
        raise ParseError("empty word", f"Row {id} has no words or an empty word", "words", "Fill them in")
    sentence = sentence_from_words(words, id=id)
    if columns.text:
        text = _text(row, columns.text)
        offsets = locate_words(words, text)
        if offsets is None:
            problem = f"The text of row {id} does not consist of its words"
            raise ParseError("words do not match the text", problem, "the words in order", "Correct the row")
        sentence = replace(sentence, text=text, offsets=offsets)
    word_labels: dict[str, tuple[str, ...]] = {}
    for name in columns.word_labels:
        labels = tuple(_class(value, name, class_names) or "" for value in _list(row, name))
        if len(labels) != len(words):
            problem = f"Row {id} has {len(words)} words and {len(labels)} values of {name}"
            raise ParseError("wrong number of word labels", problem, "one label per word", "Correct the row")
        word_labels[name] = labels
    annotations: dict[str, Any] = {
        ANNOTATION_OF_COLUMN[name.lower()]: labels
        for name, labels in word_labels.items()
        if name.lower() in ANNOTATION_OF_COLUMN and all(labels)
    }
    return replace(sentence, word_labels=MappingProxyType(word_labels), **annotations)


def _scheme(examples: Sequence[Example], name: str) -> Scheme | None:
    """The scheme of a column of BIO tags, None if its labels are others."""
    sequences = [example.segments[0].word_labels[name] for example in examples]
    labels = {label for sequence in sequences for label in sequence}
    return detect_scheme(sequences) if labels - {"O"} and all(map(is_tag, labels)) else None


def _add_spans(schemes: Mapping[str, Scheme], line: int, example: Example) -> Example:
    """The example with the spans of its BIO tags."""
    if not schemes:
        return example
    sentence = example.segments[0]
    spans = {name: decode(sentence.word_labels[name], scheme=scheme) for name, scheme in schemes.items()}
    annotations: dict[str, Any] = {
        SPAN_ANNOTATION_OF_COLUMN[name.lower()]: values
        for name, values in spans.items()
        if name.lower() in SPAN_ANNOTATION_OF_COLUMN
    }
    span_labels = MappingProxyType({**sentence.span_labels, **spans})
    return replace(example, segments=(replace(sentence, span_labels=span_labels, **annotations),))


def _are_lists(sample: Sequence[Row], name: str) -> bool:
    return all(_is_list(row.get(name)) for row in sample)


def _are_word_labels(sample: Sequence[Row], name: str, words: str) -> bool:
    """Whether every value is a list of scalars, one per word."""
    return all(
        _is_list(value := row.get(name))
        and len(items := _items(value)) == len(_items(row.get(words)))
        and all(_is_scalar(item) for item in items)
        for row in sample
    )


def _are_spans(sample: Sequence[Row], name: str) -> bool:
    """Whether every value is a list of spans, and one is not empty."""
    values = [row.get(name) for row in sample]
    if not all(_is_list(value) for value in values):
        return False
    items = [item for value in values for item in _items(value)]
    return bool(items) and all(_span_fields(item) is not None for item in items)


def _are_labels(sample: Sequence[Row], name: str) -> bool:
    """Whether every value is a short scalar or missing."""
    return all(_is_scalar(value := row.get(name)) and len(str(value)) <= MAX_LABEL_LENGTH for row in sample)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float) or getattr(value, "shape", None) == ()


def _is_list(value: object) -> bool:
    return not isinstance(value, str | bytes | Mapping) and hasattr(value, "__len__") and hasattr(value, "__iter__")


def _items(value: object) -> list[object]:
    return list(cast("Iterable[object]", value)) if _is_list(value) else []


def _text(row: Row, column: str) -> str:
    value = _value(row, column)
    if not isinstance(value, str) or not value.strip():
        raise ParseError("missing text", f"{column} is {str(value)[:40]!r}", "text", "Fill it in")
    return value.strip()


def _list(row: Row, column: str) -> list[object]:
    value = _value(row, column)
    if not _is_list(value):
        raise ParseError("wrong value", f"{column} is {str(value)[:40]!r}", "a list", "Name a column of lists")
    return _items(value)


def _label(row: Row, column: str, class_names: ClassNames) -> str | None:
    value = row.get(column)
    if not _is_scalar(value):
        raise ParseError("wrong value", f"{column} is {str(value)[:40]!r}", "a label", "Name a column of labels")
    return None if value == UNLABELLED and column in class_names else _class(value, column, class_names)


def _class(value: object, column: str, class_names: ClassNames) -> str | None:
    """The label as text, None if it is missing."""
    names = class_names.get(column)
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            expected = f"a number from 0 to {len(names) - 1}"
            raise ParseError("unknown class", f"{column} is {value}", expected, "Correct the row")
        return names[value]
    is_missing = value is None or value != value  # NaN, which data frames have for missing values
    return None if is_missing else str(value).strip() or None


def _spans(row: Row, column: str, sentence: Sentence, *, are_words: bool) -> tuple[Span, ...]:
    """The spans of a column: of words if the row has words, else of characters of the text."""
    spans: list[Span] = []
    for item in _list(row, column):
        fields = _span_fields(item)
        if fields is None:
            problem = f"{column} has the span {str(item)[:40]!r}"
            raise ParseError("wrong value", problem, "start, end and label", "Correct the row")
        start, end, label = fields
        length = len(sentence) if are_words else len(sentence.text)
        if not 0 <= start < end <= length:
            unit = "words" if are_words else "characters"
            problem = f"{column} has a span from {start} to {end} in a text of {length} {unit}"
            raise ParseError("span out of range", problem, f"0 to {length}, end exclusive", "Correct the row")
        spans.append(Span(start, end, label) if are_words else word_span(sentence, start, end, label))
    return tuple(spans)


def _span_fields(item: object) -> tuple[int, int, str] | None:
    """Start, end and label of a list of three values, or of a mapping with these names."""
    if isinstance(item, Mapping):
        mapping = cast("Mapping[str, object]", item)
        values = [mapping.get(name) for name in ("start", "end", "label")]
    else:
        values = _items(item)
    if len(values) != 3 or not all(isinstance(value, int) for value in values[:2]) or not isinstance(values[2], str):
        return None
    return cast(int, values[0]), cast(int, values[1]), values[2]


def _value(row: Row, column: str) -> object:
    if column not in row:
        problem = f"There is no column {column!r}"
        raise ParseError("missing key", problem, f"one of {', '.join(row)}", "Name another column")
    return row[column]
