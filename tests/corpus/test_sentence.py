"""Sentences: words, offsets, and splitting running text into words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.sentence import (
    join_words,
    locate_words,
    sentence_from_text,
    sentence_from_words,
    split_at_spaces,
    split_words,
)
from bertology.errors import Refusal


@given(st.text(max_size=60))
def test_every_visible_character_is_in_one_word_and_offsets_match_the_words(text: str) -> None:
    for sentence in (sentence_from_text(text), split_at_spaces(text)):
        assert tuple(text[start:end] for start, end in sentence.offsets) == sentence.words
        assert all(start < end for start, end in sentence.offsets)
        assert "".join(sentence.words) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, twenty-one!", ["Don't", "stop", ",", "twenty-one", "!"]),
        ("dogs' -x- 3.5", ["dogs", "'", "-", "x", "-", "3", ".", "5"]),
        ("naïve caf\u0065\u0301", ["naïve", "caf\u0065\u0301"]),
        ("我们2019年 ok", ["我", "们", "2019", "年", "ok"]),
        ("😀 ok", ["😀", "ok"]),
        ("snake_case", ["snake_case"]),
        ("", []),
    ],
)
def test_words_of_running_text(text: str, words: list[str]) -> None:
    assert list(sentence_from_text(text).words) == words


@given(st.lists(st.text(alphabet="ab.é我", min_size=1, max_size=4), max_size=8), st.data())
def test_words_are_located_in_the_text_they_form(words: list[str], data: st.DataObject) -> None:
    spaces = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    text, offsets = join_words(words, spaces)
    assert [text[a:b] for a, b in offsets] == words
    assert locate_words(words, text) == offsets


def test_words_that_do_not_form_the_text_are_not_located() -> None:
    assert locate_words(["a", "c"], "a b c") is None
    assert locate_words(["a"], "a b") is None
    assert locate_words(["b", "a"], "a b") is None


def test_single_spaces_change_the_text_but_not_the_words() -> None:
    sentence = sentence_from_text("Stop!").with_single_spaces()
    assert (sentence.text, sentence.offsets, sentence.words) == ("Stop !", ((0, 4), (5, 6)), ("Stop", "!"))


def test_a_plain_sentence_has_no_annotations() -> None:
    assert sentence_from_words(["a"]).annotations() == frozenset()
    assert len(sentence_from_words(["a", "b"])) == 2


def test_an_unknown_word_splitting_is_refused() -> None:
    with pytest.raises(Refusal, match="Did you mean 'spaces'"):
        split_words("a b", "space")  # pyright: ignore[reportArgumentType]


@given(st.text(st.sampled_from("aé1_ß'’- .\n\x1c\xa0\x00…€℃ªÀ"), max_size=12))
def test_common_text_is_split_by_the_same_rules_as_other_text(text: str) -> None:
    """Text of common characters takes a fast path, which a character from elsewhere, after a space, switches off."""
    with_other = sentence_from_text(text + " \u0301")
    assert sentence_from_text(text).offsets == with_other.offsets[:-1]
