"""Convert Hugging Face datasets to corpora: columns by name, class numbers converted to class names.

A dataset is only iterated for rows (mappings), and its `features` are read for class names. The `datasets` library is
not imported, so that a list of dictionaries can be used as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from bertology.corpus.bio import decode, detect_scheme, is_tag
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.sentence import WordSplitting, sentence_from_words, split_words
from bertology.corpus.text_files import ParseError, ParseErrorHandler, parse_all
from bertology.errors import Refusal, unknown_name

DatasetRow = Mapping[str, object]
ClassNames = Mapping[str, Sequence[str] | None]


def from_dataset(
    dataset: Iterable[DatasetRow],
    *,
    text: str = "",
    first: str = "",
    second: str = "",
    words: str = "",
    tags: str = "",
    label: str = "",
    word_splitting: WordSplitting = "text",
    name: str = "dataset",
    skip_malformed: bool = False,
    limit: int | None = None,
) -> Corpus:
    """Make a corpus of the rows of a dataset, from columns of texts, of first and second texts, or of words.

    `tags` names the column of word tags (BIO tags also give entities), `label` that of classes. A row of class -1,
    which hidden test sets use, has no label.
    """
    if [bool(text), bool(first and second), bool(words)].count(True) != 1 or bool(first) != bool(second):
        raise Refusal(
            "The columns to read are ambiguous",
            "either text, or first and second, or words",
            "Name the columns, for example from_dataset(data, text='sentence', label='label')",
        )
    features: Any = getattr(dataset, "features", None)
    if isinstance(features, Mapping):
        for column in filter(None, (text, first, second, words, tags, label)):
            if column not in features:
                raise unknown_name("column of the dataset", column, cast("Mapping[str, object]", features))
    errors = ParseErrorHandler(skip_malformed=skip_malformed)
    class_names = {column: _class_names(features, column) for column in (label, tags) if column}
    if words:
        parse = partial(_tagged_example, words, tags, label, class_names)
    else:
        parse = partial(_text_example, (text,) if text else (first, second), label, word_splitting, class_names)
    rows = enumerate(dataset, start=1)
    examples = tuple(islice(parse_all(Path(name), errors, rows, parse), limit))
    if tags:
        examples = tuple(_add_entities(examples, Path(name), errors))
    if not examples:
        raise Refusal(f"The dataset {name} contains no rows", "at least one row", "Check the split that was loaded")
    return Corpus(examples, name=name, format="datasets", skipped=tuple(errors.skipped))


def _class_names(features: Any, column: str) -> Sequence[str] | None:
    """Return the class names of a column of classes or of lists of classes."""
    feature = features.get(column) if isinstance(features, Mapping) else None
    for candidate in (feature, getattr(feature, "feature", None)):
        names = getattr(candidate, "names", None)
        if isinstance(names, list):
            return cast("list[str]", names)
    return None


def _text_example(
    columns: tuple[str, ...],
    label: str,
    word_splitting: WordSplitting,
    class_names: ClassNames,
    line: int,
    row: DatasetRow,
) -> Example:
    gold_label = _label(row, label, class_names)
    segments = tuple(split_words(_text(row, column), word_splitting) for column in columns)
    if len(segments) == 1:
        return Example((replace(segments[0], label=gold_label, id=str(line)),), label=gold_label, id=str(line))
    return Example(segments, "pair", gold_label, id=str(line))


def _tagged_example(words: str, tags: str, label: str, class_names: ClassNames, line: int, row: DatasetRow) -> Example:
    forms = [str(word) for word in _list(row, words)]
    if not forms or not all(form.strip() for form in forms):
        raise ParseError("empty word", f"Row {line} has no words or an empty word", "words", "Fill them in")
    values = [_class(value, tags, class_names) for value in _list(row, tags)] if tags else None
    if values is not None and len(values) != len(forms):
        problem = f"Row {line} has {len(forms)} words and {len(values)} tags"
        raise ParseError("wrong number of tags", problem, "one tag per word", "Correct the row")
    gold_label = _label(row, label, class_names)
    sentence = sentence_from_words(forms, id=str(line))
    sentence = replace(sentence, tags=None if values is None else tuple(values), label=gold_label)
    return Example((sentence,), label=gold_label, id=sentence.id)


def _add_entities(examples: tuple[Example, ...], path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    """Add the entities that the tags encode, if all tags are BIO, IOB1 or BIOES tags."""
    tag_sequences = [example.segments[0].tags or () for example in examples]
    if not all(is_tag(tag) for tags in tag_sequences for tag in tags):
        return iter(examples)
    scheme = detect_scheme(tag_sequences)

    def decode_entities(line: int, example: Example) -> Example:
        sentence = example.segments[0]
        return replace(example, segments=(replace(sentence, entities=decode(sentence.tags or (), scheme=scheme)),))

    return parse_all(path, errors, enumerate(examples, start=1), decode_entities)


def _text(row: DatasetRow, column: str) -> str:
    value = _value(row, column)
    if not isinstance(value, str) or not value.strip():
        raise ParseError("missing text", f"{column} is {str(value)[:40]!r}", "text", "Fill it in")
    return value.strip()


def _list(row: DatasetRow, column: str) -> Iterator[object]:
    value = _value(row, column)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParseError("wrong value", f"{column} is {str(value)[:40]!r}", "a list", "Name a column of lists")
    return iter(cast("Sequence[object]", value))


def _label(row: DatasetRow, column: str, class_names: ClassNames) -> str | None:
    if not column or (value := _value(row, column)) == -1:
        return None
    return _class(value, column, class_names)


def _class(value: object, column: str, class_names: ClassNames) -> str:
    names = class_names.get(column)
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            expected = f"a number from 0 to {len(names) - 1}"
            raise ParseError("unknown class", f"{column} is {value}", expected, "Correct the row")
        return names[value]
    if value is None or not str(value).strip():
        raise ParseError("missing annotation", f"{column} is empty", "a class", "Fill it in")
    return str(value)


def _value(row: DatasetRow, column: str) -> object:
    if column not in row:
        problem = f"There is no column {column!r}"
        raise ParseError("missing key", problem, f"one of {', '.join(row)}", "Name another column")
    return row[column]
