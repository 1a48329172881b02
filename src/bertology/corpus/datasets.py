"""Any Hugging Face dataset as a corpus: rows by column name, class numbers turned into their names.

Only what a dataset offers every user is asked of it: it is iterated for rows (mappings), and its `features` are looked
at for class names. The `datasets` library itself is not imported, so a list of dictionaries does as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

from bertology.corpus.bio import decode, is_tag, scheme_of
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.sentence import Sentence, sentence
from bertology.corpus.source import Problems
from bertology.corpus.wording import Words, worded
from bertology.errors import Refusal, unknown_name

Row = Mapping[str, object]


def from_dataset(
    dataset: Iterable[Row],
    *,
    text: str = "",
    first: str = "",
    second: str = "",
    words: str = "",
    tags: str = "",
    label: str = "",
    split_words: Words = "text",
    name: str = "dataset",
    skip_bad: bool = False,
    limit: int | None = None,
) -> Corpus:
    """The corpus of a dataset's rows; name the columns of a text, of a first and second text, or of words.

    `tags` is the column of a tag a word (BIO tags give the entities as well), `label` that of the class. A row whose
    class is -1, which hidden test sets use, has no label.
    """
    if [bool(text), bool(first and second), bool(words)].count(True) != 1 or bool(first) != bool(second):
        raise Refusal(
            "The columns to read are not clear",
            "either text, or first and second, or words",
            "Name the columns, for example from_dataset(data, text='sentence', label='label')",
        )
    features = _features(dataset)
    if features is not None:
        for column in filter(None, (text, first, second, words, tags, label)):
            if column not in features:
                raise unknown_name("column of the dataset", column, features)
    problems = Problems(skip_bad=skip_bad)
    class_names = {column: _class_names(features, column) for column in (label, tags) if column}
    if words:
        parse = partial(_tagged, words, tags, label, class_names)
    else:
        parse = partial(_textual, (text,) if text else (first, second), label, split_words, class_names)
    rows = enumerate(dataset, start=1)
    items = tuple(islice(parsed(Path(name), problems, rows, parse), limit))
    if tags:
        items = tuple(_with_entities(items, Path(name), problems))
    if not items:
        raise Refusal(f"The dataset {name} holds no rows", "at least one row", "Check the split that was loaded")
    return Corpus(items, name=name, format="datasets", skipped=tuple(problems.skipped))


def _features(dataset: object) -> Mapping[str, object] | None:
    features = getattr(dataset, "features", None)
    return cast("Mapping[str, object]", features) if isinstance(features, Mapping) else None


def _class_names(features: Mapping[str, object] | None, column: str) -> Sequence[str] | None:
    """The names of a column's classes, also where the column is a list of them."""
    feature = None if features is None else features.get(column)
    for candidate in (feature, getattr(feature, "feature", None)):
        names = getattr(candidate, "names", None)
        if isinstance(names, list):
            return cast("list[str]", names)
    return None


def _textual(
    columns: tuple[str, ...],
    label: str,
    split_words: Words,
    class_names: Mapping[str, Sequence[str] | None],
    line: int,
    row: Row,
) -> Item:
    gold = _label(row, label, class_names)
    parts = tuple(worded(_text(row, column), split_words) for column in columns)
    if len(parts) == 1:
        return Item((replace(parts[0], label=gold, id=str(line)),), label=gold, id=str(line))
    return Item(parts, "pair", gold, id=str(line))


def _tagged(
    words: str, tags: str, label: str, class_names: Mapping[str, Sequence[str] | None], line: int, row: Row
) -> Item:
    forms = [str(word) for word in _list(row, words)]
    if not forms or not all(form.strip() for form in forms):
        raise Fault("empty word", f"Row {line} has an empty word, or none", "words", "Fill them in")
    values = [_class(value, tags, class_names) for value in _list(row, tags)] if tags else None
    if values is not None and len(values) != len(forms):
        found = f"Row {line} has {len(forms)} words and {len(values)} tags"
        raise Fault("wrong number of tags", found, "a tag a word", "Correct the row")
    gold = _label(row, label, class_names)
    made: Sentence = sentence(forms, id=str(line))
    made = replace(made, tags=None if values is None else tuple(values), label=gold)
    return Item((made,), label=gold, id=made.id)


def _with_entities(items: tuple[Item, ...], path: Path, problems: Problems) -> Iterator[Item]:
    """The items with the spans that their tags mark, where all tags are BIO (or IOB1, BIOES)."""
    tagged = [item.parts[0].tags or () for item in items]
    if not all(is_tag(tag) for tags in tagged for tag in tags):
        return iter(items)
    scheme = scheme_of(tagged)

    def decoded(line: int, item: Item) -> Item:
        part = item.parts[0]
        return replace(item, parts=(replace(part, entities=decode(part.tags or (), scheme=scheme)),))

    return parsed(path, problems, enumerate(items, start=1), decoded)


def _text(row: Row, column: str) -> str:
    value = _value(row, column)
    if not isinstance(value, str) or not value.strip():
        raise Fault("missing text", f"{column} is {str(value)[:40]!r}", "text", "Fill it in")
    return value.strip()


def _list(row: Row, column: str) -> Iterator[object]:
    value = _value(row, column)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Fault("wrong value", f"{column} is {str(value)[:40]!r}", "a list", "Name a column of lists")
    return iter(cast("Sequence[object]", value))


def _label(row: Row, column: str, class_names: Mapping[str, Sequence[str] | None]) -> str | None:
    if not column or (value := _value(row, column)) == -1:
        return None
    return _class(value, column, class_names)


def _class(value: object, column: str, class_names: Mapping[str, Sequence[str] | None]) -> str:
    names = class_names.get(column)
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            raise Fault("unknown class", f"{column} is {value}", f"a number below {len(names)}", "Correct the row")
        return names[value]
    if value is None or not str(value).strip():
        raise Fault("missing annotation", f"{column} is empty", "a class", "Fill it in")
    return str(value)


def _value(row: Row, column: str) -> object:
    if column not in row:
        raise Fault("missing key", f"There is no column {column!r}", f"one of {', '.join(row)}", "Name another column")
    return row[column]
