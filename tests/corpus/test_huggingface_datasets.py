"""Datasets as corpora: columns by name, class names from the features, without the `datasets` library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.corpus.checks import assert_offsets_match, assert_valid

from bertology.corpus.huggingface_datasets import from_dataset
from bertology.corpus.sentence import Span
from bertology.errors import Refusal


@dataclass
class ClassLabel:
    """Like the feature of the library for a column of classes."""

    names: list[str]


@dataclass
class ListOf:
    """Like the feature of the library for a column of lists."""

    feature: object


@dataclass
class Dataset:
    """Rows and features, like a dataset of the library."""

    rows: list[dict[str, Any]]
    features: dict[str, object] = field(default_factory=dict[str, object])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


def test_class_numbers_of_texts_become_class_names() -> None:
    rows = [{"sentence": "A good film.", "label": 1}, {"sentence": "Bad.", "label": 0}, {"sentence": "?", "label": -1}]
    data = Dataset(rows, {"sentence": "string", "label": ClassLabel(["negative", "positive"])})
    corpus = from_dataset(data, text="sentence", label="label", name="sst2")
    assert_valid(corpus)
    assert [example.label for example in corpus] == ["positive", "negative", None]
    assert corpus.annotations["label"] == 2
    assert (corpus.name, corpus.format) == ("sst2", "datasets")
    assert_offsets_match(corpus)


def test_a_list_of_dictionaries_is_a_dataset() -> None:
    corpus = from_dataset(
        [{"premise": "A.", "hypothesis": "B.", "gold": "yes"}], first="premise", second="hypothesis", label="gold"
    )
    assert (corpus[0].kind, corpus[0].label, len(corpus[0].segments)) == ("pair", "yes", 2)


def test_bio_tags_give_entities() -> None:
    features: dict[str, object] = {"tokens": ListOf("string"), "ner": ListOf(ClassLabel(["O", "B-PER", "I-PER"]))}
    data = Dataset([{"tokens": ["Ann", "Lee", "sang"], "ner": [1, 2, 0]}, {"tokens": ["No"], "ner": [0]}], features)
    corpus = from_dataset(data, words="tokens", tags="ner")
    assert_valid(corpus)
    assert corpus[0].segments[0].tags == ("B-PER", "I-PER", "O")
    assert [sentence.entities for sentence in corpus.sentences] == [(Span(0, 2, "PER"),), ()]


def test_tags_that_are_not_bio_give_no_entities() -> None:
    corpus = from_dataset([{"tokens": ["Go"], "pos": ["VB"]}], words="tokens", tags="pos")
    assert (corpus[0].segments[0].tags, corpus[0].segments[0].entities) == (("VB",), None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "", "label": 0}, "missing text"),
        ({"text": None, "label": 0}, "missing text"),
        ({"text": 3, "label": 0}, "missing text"),
        ({"label": 0}, "missing key"),
        ({"text": "a", "label": 7}, "unknown class"),
        ({"text": "a", "label": None}, "missing annotation"),
    ],
)
def test_a_malformed_row_is_refused_or_counted(row: dict[str, Any], reason: str) -> None:
    data = Dataset([{"text": "ok", "label": 0}, row], {"text": "string", "label": ClassLabel(["no", "yes"])})
    with pytest.raises(Refusal, match="dataset, line 2"):
        from_dataset(data, text="text", label="label")
    corpus = from_dataset(data, text="text", label="label", skip_malformed=True)
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, [reason])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"tokens": ["a", "b"], "ner": ["O"]}, "wrong number of tags"),
        ({"tokens": "a b", "ner": ["O"]}, "wrong value"),
        ({"tokens": [], "ner": []}, "empty word"),
        ({"tokens": [" "], "ner": ["O"]}, "empty word"),
        ({"tokens": ["a"], "ner": ["I-X"]}, "I- without B-"),
    ],
)
def test_a_malformed_row_of_words_is_refused_or_counted(row: dict[str, Any], reason: str) -> None:
    rows = [{"tokens": ["a"], "ner": ["B-X"]}, row]
    with pytest.raises(Refusal, match="line 2"):
        from_dataset(rows, words="tokens", tags="ner")
    corpus = from_dataset(rows, words="tokens", tags="ner", skip_malformed=True)
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, [reason])


def test_ambiguous_and_missing_columns_are_refused() -> None:
    ambiguous: list[dict[str, Any]] = [{}, {"text": "a", "words": "b"}, {"first": "a"}, {"text": "a", "second": "b"}]
    for options in ambiguous:
        with pytest.raises(Refusal, match="ambiguous"):
            from_dataset([{"a": "x"}], **options)
    with pytest.raises(Refusal, match="Did you mean 'sentence'"):
        from_dataset(Dataset([], {"sentence": "string"}), text="sentense")
    with pytest.raises(Refusal, match="contains no rows"):
        from_dataset([], text="a")


def test_the_limit_stops_reading() -> None:
    assert len(from_dataset(({"a": f"row {n}"} for n in range(10**9)), text="a", limit=3)) == 3
