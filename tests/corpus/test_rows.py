"""Rows with named columns: which columns are read, labels under their own names, and malformed rows."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.corpus.checks import assert_valid

import bertology
from bertology.corpus.sentence import Span
from bertology.errors import Refusal


def test_every_column_of_short_values_is_a_label_under_its_name() -> None:
    rows = [{"review": "A film.", "Topic": "war", "stars": 4, "comment by": "x" * 200}]
    corpus = bertology.corpus(rows)
    assert dict(corpus[0].labels) == {"Topic": "war", "stars": "4"}
    assert [skip.reason for skip in corpus.skipped] == ["column 'comment by' not read (neither text nor short labels)"]


def test_named_columns_are_the_only_labels() -> None:
    rows = [{"text": "A film.", "topic": "war", "stars": 4}]
    corpus = bertology.corpus(rows, label=("stars", "topic"))
    assert (corpus[0].label, dict(corpus[0].labels)) == ("4", {"stars": "4", "topic": "war"})
    assert dict(bertology.corpus(rows, label="topic")[0].labels) == {"topic": "war"}


def test_a_plain_label_has_no_second_name() -> None:
    corpus = bertology.corpus([{"text": "A film.", "label": "good"}])
    assert (corpus[0].label, dict(corpus[0].labels)) == ("good", {})


def test_columns_named_after_annotations_give_them() -> None:
    rows: list[dict[str, Any]] = [
        {"tokens": ["Ann", "sang"], "upos": ["PROPN", "VERB"], "ner": ["B-PER", "O"], "mood": ["", "glad"], "id": 7}
    ]
    corpus = bertology.corpus(rows)
    assert_valid(corpus)
    sentence = corpus[0].segments[0]
    assert (sentence.pos, sentence.entities) == (("PROPN", "VERB"), (Span(0, 1, "PER"),))
    assert dict(sentence.word_labels) == {"upos": ("PROPN", "VERB"), "ner": ("B-PER", "O"), "mood": ("", "glad")}
    assert dict(corpus[0].labels) == {"id": "7"}


def test_tags_of_every_scheme_give_the_same_spans() -> None:
    for tags in (["B-X", "I-X", "O"], ["I-X", "I-X", "O"], ["B-X", "E-X", "O"]):
        corpus = bertology.corpus([{"words": ["a", "b", "c"], "kind": tags}])
        assert corpus[0].segments[0].span_labels["kind"] == (Span(0, 2, "X"),), tags


def test_spans_of_words_and_of_characters() -> None:
    words = bertology.corpus([{"words": ["Ann", "Lee", "sang"], "who": [[0, 2, "person"]]}])
    assert words[0].segments[0].span_labels["who"] == (Span(0, 2, "person"),)
    text = bertology.corpus([{"text": "Ann Lee sang.", "who": [{"start": 0, "end": 7, "label": "person"}]}])
    assert text[0].segments[0].span_labels["who"] == (Span(0, 2, "person"),)
    with pytest.raises(Refusal, match="from 0 to 70"):
        bertology.corpus([{"text": "Ann Lee sang.", "who": [[0, 70, "person"]]}])


def test_words_keep_the_text_they_are_given_with() -> None:
    rows = [{"words": ["Dogs", "bark", "."], "text": "Dogs  bark."}]
    corpus = bertology.corpus(rows, words="words", text="text")
    assert corpus[0].segments[0].text == "Dogs  bark."
    with pytest.raises(Refusal, match="does not consist of its words"):
        bertology.corpus([{"words": ["Dogs"], "text": "Cats"}], words="words", text="text")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"tokens": ["a", "b"], "ner": ["O"]}, "wrong number of word labels"),
        ({"tokens": "a b", "ner": ["O"]}, "wrong value"),
        ({"tokens": [], "ner": []}, "empty word"),
        ({"tokens": [" "], "ner": ["O"]}, "empty word"),
        ({"tokens": ["a"], "ner": ["I-X"]}, "I- without B-"),
        ({"tokens": ["a"]}, "missing key"),
    ],
)
def test_a_malformed_row_of_words_is_refused_or_counted(row: dict[str, Any], reason: str) -> None:
    rows = [{"tokens": ["a"], "ner": ["B-X"]}, row]
    with pytest.raises(Refusal, match="line 2"):
        bertology.corpus(rows, words="tokens", word_labels="ner")
    corpus = bertology.corpus(rows, words="tokens", word_labels="ner", skip_malformed=True)
    assert (len(corpus), [skip.reason for skip in corpus.skipped]) == (1, [reason])


@pytest.mark.parametrize("row", [{"text": ""}, {"text": None}, {"text": 3}, {"text": float("nan")}])
def test_a_row_without_text_is_refused_or_counted(row: dict[str, Any]) -> None:
    rows = [{"text": "Good."}, row]
    with pytest.raises(Refusal, match="line 2"):
        bertology.corpus(rows, text="text")
    assert len(bertology.corpus(rows, text="text", skip_malformed=True)) == 1


def test_ambiguous_and_missing_columns_are_refused() -> None:
    rows: list[dict[str, Any]] = [{"a": "x", "b": "y", "sentence": "z"}]
    ambiguous: list[dict[str, Any]] = [
        {"text": "a", "pair": ("a", "b")},
        {"pair": ("a",)},
        {"words": "a", "pair": "a,b"},
    ]
    for options in ambiguous:
        with pytest.raises(Refusal, match="ambiguous"):
            bertology.corpus(rows, **cast(Any, options))
    with pytest.raises(Refusal, match="Did you mean 'sentence'"):
        bertology.corpus(rows, text="sentense")
    with pytest.raises(Refusal, match="a, b is recognised"):
        bertology.corpus([{"a": "x", "b": "y"}])
