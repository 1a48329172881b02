"""Tokens are aligned to words by their characters, in the notations of all tokenisers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import FEW_EXAMPLES

from bertology.encoder.tokens import SpecialToken, WordAlignment
from bertology.recording.character_alignment import (
    align_by_characters,
    join_tokens,
    special_kind,
    subword_marker,
    word_starts,
)

CASES = {
    "WordPiece": (["un", "##happi", "##ness", "is", "here"], ["unhappiness", "is", "here"], [0, 0, 0, 1, 2]),
    "lower case and accents": (["cafe", "naive", "ist"], ["Café", "naïve", "IST"], [0, 1, 2]),
    "byte-level BPE": (["Hello", "Ġwor", "ld", "!"], ["Hello", "world", "!"], [0, 1, 1, 2]),
    "bytes of one character": (["Ġâ", "ĺ", "ĥ", "Ġsnow"], ["☃", "snow"], [0, 0, 0, 1]),
    "byte-level BPE with accents": (["cafÃ©", "Ġau"], ["café", "au"], [0, 1]),
    "SentencePiece": (["▁New", "▁York", "er", "s"], ["New", "Yorkers"], [0, 1, 1, 1]),
    "a lone marker belongs to the word after it": (["▁a", "▁", "。"], ["a", "。"], [0, 1, 1]),
    "OpenAI GPT": (["un", "happi", "ness</w>", "is</w>", "!</w>"], ["unhappiness", "is", "!"], [0, 0, 0, 1, 2]),
    "BertViz after byte-level BPE": (["Hello", " wor", "ld", "!"], ["Hello", "world", "!"], [0, 1, 1, 2]),
    "BertViz leaves bytes encoded": ([" cafÃ©", " au"], ["café", "au"], [0, 1]),
    "BertViz after SentencePiece": ([" Caf", "é", " noir"], ["Café", "noir"], [0, 0, 1]),
    "a lone blank belongs to the word after it": ([" a", " ", "。"], ["a", "。"], [0, 1, 1]),
    "compatibility forms": (["▁...", "▁1/2"], ["…", "1/2"], [0, 1]),
    "a token across two words": (["cannot", "go"], ["can", "not", "go"], [0, 2]),
    "unknown word": (["the", "[UNK]", "sat"], ["the", "☃☃", "sat"], [0, 1, 2]),
    "unknown part of a word": (["[UNK]", "-", "like"], ["☃-like"], [0, 0, 0]),
    "two unknown words": (["[UNK]", "[UNK]", "b"], ["☃", "☂☂", "b"], [0, 1, 2]),
    "a mask": (["a", "[MASK]", "c"], ["a", "bird", "c"], [0, 1, 2]),
    "a word without tokens": (["a", "c"], ["a", "\u200b", "c"], [0, 2]),
    "hash signs are words": (["#", "##"], ["#", "##"], [0, 1]),
    "no words": ([], [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_alignment(case: str) -> None:
    tokens, words, expected = CASES[case]
    alignment = align_by_characters(tokens, words, subword_marker(tokens))
    assert isinstance(alignment, WordAlignment)
    assert list(alignment.word_ids) == expected
    assert alignment.n_straddling == (case == "a token across two words")


def test_the_first_word_that_is_not_spelled_is_returned() -> None:
    assert align_by_characters(["the", "dog"], ["the", "cat"], "##") == 1
    assert align_by_characters(["the"], ["the", "cat"], "##") == 1
    assert align_by_characters(["the", "cat", "sat"], ["the", "cat"], "##") == 1
    assert align_by_characters(["the"], [], "##") is not None


def test_many_unknown_tokens_take_little_time() -> None:
    words = ["☃☃☃☃☃☃"] * 60
    assert isinstance(align_by_characters(["[UNK]"] * 59 + ["no"], words, "##"), int)


def test_words_are_joined_from_tokens() -> None:
    assert join_tokens(["un", "##do", "it", "."], "##") == ["undo", "it", "."]
    assert join_tokens(["Hello", "Ġwor", "ld"], "Ġ") == ["Hello", "world"]
    assert join_tokens(["▁Hello", "▁", "wor", "ld"], "▁") == ["Hello", "world"]
    assert join_tokens(["un", "do</w>", "it</w>", ".</w>"], "</w>") == ["undo", "it", "."]
    assert join_tokens([" cafÃ©", " au", "x"], " ") == ["café", "aux"]
    assert join_tokens([" Café", " au", "x"], " ") == ["Café", "aux"]


@pytest.mark.parametrize(
    ("tokens", "marker"),
    [
        (["[CLS]", "the", "cat", "##s"], "##"),
        (["<s>", "The", "Ġcat", "s"], "Ġ"),
        (["▁The", "▁cat", "s"], "▁"),
        (["<|endoftext|>", "The", " cat", "s"], " "),
        (["<s>", "the</w>", "cat", "s</w>", "</s>"], "</w>"),
    ],
)
def test_the_marker_of_tokens_is_recognised_and_says_where_words_start(tokens: list[str], marker: str) -> None:
    assert subword_marker(tokens) == marker
    starts = zip(tokens, word_starts(tokens, subword_marker(tokens)), strict=True)
    assert sum(starts_word for token, starts_word in starts if special_kind(token) is SpecialToken.NONE) == 2


@FEW_EXAMPLES
@given(
    words=st.lists(st.text("abcÉß中.#", min_size=1, max_size=6), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 3)),
)
def test_words_split_anywhere_align(words: list[str], cuts: list[int]) -> None:
    """Each word is split at random and lower-cased, as by a WordPiece tokeniser."""
    tokens: list[str] = []
    expected: list[int] = []
    sizes = iter(cuts * 100 or [2] * 100)
    for index, word in enumerate(words):
        position = 0
        while position < len(word):
            size = next(sizes)
            text = word[position : position + size].lower()
            tokens.append(f"##{text}" if position else text)
            expected.append(index)
            position += size
    if any(token.startswith("##") and words[expected[i]].startswith("##") for i, token in enumerate(tokens)):
        return  # a word that starts with ## looks like a continuation
    alignment = align_by_characters(tokens, words, "##")
    assert isinstance(alignment, WordAlignment)
    assert list(alignment.word_ids) == expected


def test_special_tokens_are_recognised_by_their_usual_spellings() -> None:
    kinds = {
        "[CLS]": SpecialToken.CLS,
        "<s>": SpecialToken.CLS,
        "[SEP]": SpecialToken.SEP,
        "</s>": SpecialToken.SEP,
        "dog": SpecialToken.NONE,
    }
    assert {token: special_kind(token) for token in kinds} == kinds
    assert special_kind("[MASK]") == SpecialToken.NONE, "a mask replaces a word of the text"
