"""Sentences: words, offsets, and how running text is cut into words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus.checks import DETERMINED

from bertology.corpus.sentence import from_text, locate, sentence, spell
from bertology.corpus.wording import from_spaces, worded
from bertology.errors import Refusal


@DETERMINED
@given(st.text(max_size=60))
def test_every_visible_character_is_in_one_word_and_offsets_give_the_words(text: str) -> None:
    for made in (from_text(text), from_spaces(text)):
        assert tuple(text[a:b] for a, b in made.offsets) == made.words
        assert all(a < b for a, b in made.offsets)
        assert "".join(made.words) == "".join(text.split())


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
    assert list(from_text(text).words) == words


@DETERMINED
@given(st.lists(st.text(alphabet="ab.é我", min_size=1, max_size=4), max_size=8), st.data())
def test_words_are_found_where_they_were_spelled(words: list[str], data: st.DataObject) -> None:
    spaces = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    text, offsets = spell(words, spaces)
    assert [text[a:b] for a, b in offsets] == words
    assert locate(words, text) == offsets


def test_words_that_do_not_spell_the_text_are_not_found() -> None:
    assert locate(["a", "c"], "a b c") is None
    assert locate(["a"], "a b") is None
    assert locate(["b", "a"], "a b") is None


def test_respacing_keeps_the_words_and_layers() -> None:
    made = from_text("Stop!").respaced()
    assert (made.text, made.offsets, made.words) == ("Stop !", ((0, 4), (5, 6)), ("Stop", "!"))


def test_layers_are_those_that_are_present() -> None:
    assert sentence(["a"]).layers() == frozenset()
    assert len(sentence(["a", "b"])) == 2


def test_an_unknown_way_to_split_words_is_refused() -> None:
    with pytest.raises(Refusal, match="Did you mean 'spaces'"):
        worded("a b", "space")  # pyright: ignore[reportArgumentType]
