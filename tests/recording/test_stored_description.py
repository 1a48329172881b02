"""A stored input is read only if its tokens fit each other and the words of the corpus."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.sentence import sentence_from_words
from bertology.recording.stored_description import parse_input

STORED: dict[str, Any] = {
    "example_index": 0,
    "input_index": 0,
    "window_index": 0,
    "tokens": ["[CLS]", "she", "ran", "[SEP]"],
    "n_words": 2,
    "n_straddling": 0,
    "n_unknown": 0,
    "ids": [2, 5, 6, 3],
    "type_ids": [0, 0, 0, 0],
    "segment_ids": [-1, 0, 0, -1],
    "word_ids": [-1, 0, 1, -1],
    "special_kinds": [1, 0, 0, 2],
}


def corpus() -> Corpus:
    return corpus_from_sentences([sentence_from_words(["She", "ran"])])


def test_an_input_is_read_as_it_was_stored() -> None:
    read = parse_input(json.dumps(STORED).encode(), corpus())
    assert read.key == (0, 0, 0) and read.text.words == ("She", "ran")
    assert (read.tokens.tokens, read.tokens.ids.tolist()) == (tuple(STORED["tokens"]), STORED["ids"])
    assert read.tokens.word_ids.tolist() == STORED["word_ids"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"word_ids": [-2, 0, 1, -1]}, "word_ids are not from -1 to 1"),
        ({"word_ids": [-1, 0, 2, -1]}, "word_ids are not from -1 to 1"),
        ({"segment_ids": [-2, 0, 0, -1]}, "segment_ids are not from -1 to 0"),
        ({"segment_ids": [-1, 0, 1, -1]}, "segment_ids are not from -1 to 0"),
        ({"type_ids": [0, 0, 0, -1]}, "type_ids are not from 0"),
        ({"special_kinds": [-1, 0, 0, 0]}, "special_kinds are not from 0"),
        ({"special_kinds": [99, 0, 0, 0]}, "special_kinds are not from 0"),
        ({"ids": [2, 5, 3]}, "4 tokens have arrays of another length"),
        ({"n_words": 3}, "2 words, and n_words is 3"),
        ({"example_index": 1}, "there is no input 0 of example 1"),
        ({"input_index": 1}, "there is no input 1 of example 0"),
    ],
)
def test_tokens_that_do_not_fit_are_an_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_input(json.dumps(STORED | changes).encode(), corpus())
