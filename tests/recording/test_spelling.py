"""Pieces aligned to words by their characters, across the spellings of the families."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import DETERMINED

from bertology.encoder.pieces import Alignment, Special
from bertology.recording.spelling import align_by_characters, is_byte_level, special_kind, words_of

CASES = {
    "word pieces": (["un", "##happi", "##ness", "is", "here"], ["unhappiness", "is", "here"], [0, 0, 0, 1, 2]),
    "lower case and accents": (["cafe", "naive", "ist"], ["Café", "naïve", "IST"], [0, 1, 2]),
    "byte pairs": (["Hello", "Ġwor", "ld", "!"], ["Hello", "world", "!"], [0, 1, 1, 2]),
    "bytes of one character": (["Ġâ", "ĺ", "ĥ", "Ġsnow"], ["☃", "snow"], [0, 0, 0, 1]),
    "byte pairs with accents": (["cafÃ©", "Ġau"], ["café", "au"], [0, 1]),
    "sentence pieces": (["▁New", "▁York", "er", "s"], ["New", "Yorkers"], [0, 1, 1, 1]),
    "a lone marker goes with what follows": (["▁a", "▁", "。"], ["a", "。"], [0, 1, 1]),
    "compatibility forms": (["▁...", "▁1/2"], ["…", "1/2"], [0, 1]),
    "a piece over two words": (["cannot", "go"], ["can", "not", "go"], [0, 2]),
    "unknown word": (["the", "[UNK]", "sat"], ["the", "☃☃", "sat"], [0, 1, 2]),
    "unknown part of a word": (["[UNK]", "-", "like"], ["☃-like"], [0, 0, 0]),
    "two unknown words": (["[UNK]", "[UNK]", "b"], ["☃", "☂☂", "b"], [0, 1, 2]),
    "a mask": (["a", "[MASK]", "c"], ["a", "bird", "c"], [0, 1, 2]),
    "a vanished word": (["a", "c"], ["a", "\u200b", "c"], [0, 2]),
    "hash signs are words": (["#", "##"], ["#", "##"], [0, 1]),
    "nothing": ([], [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_alignment(case: str) -> None:
    tokens, words, expected = CASES[case]
    found = align_by_characters(tokens, words, byte_level=is_byte_level(tokens))
    assert isinstance(found, Alignment)
    assert list(found.word) == expected
    assert found.straddling == (case == "a piece over two words")


def test_words_that_are_not_spelled_are_named() -> None:
    assert align_by_characters(["the", "dog"], ["the", "cat"], byte_level=False) == 1
    assert align_by_characters(["the"], ["the", "cat"], byte_level=False) == 1
    assert align_by_characters(["the", "cat", "sat"], ["the", "cat"], byte_level=False) == 1
    assert align_by_characters(["the"], [], byte_level=False) is not None


def test_many_unknown_pieces_do_not_take_for_ever() -> None:
    words = ["☃☃☃☃☃☃"] * 60
    assert isinstance(align_by_characters(["[UNK]"] * 59 + ["no"], words, byte_level=False), int)


def test_words_are_put_together_from_pieces() -> None:
    assert words_of(["un", "##do", "it", "."], byte_level=False) == ["undo", "it", "."]
    assert words_of(["Hello", "Ġwor", "ld"], byte_level=True) == ["Hello", "world"]
    assert words_of(["▁Hello", "▁", "wor", "ld"], byte_level=False) == ["Hello", "world"]


@DETERMINED
@given(
    words=st.lists(st.text("abcÉß中.#", min_size=1, max_size=6), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 3)),
)
def test_any_cutting_of_words_aligns(words: list[str], cuts: list[int]) -> None:
    """Each word cut at random and lower-cased, as a WordPiece tokeniser would write it."""
    tokens: list[str] = []
    expected: list[int] = []
    sizes = iter(cuts * 100 or [2] * 100)
    for number, word in enumerate(words):
        position = 0
        while position < len(word):
            size = next(sizes)
            piece = word[position : position + size].lower()
            tokens.append(f"##{piece}" if position else piece)
            expected.append(number)
            position += size
    if any(token.startswith("##") and words[expected[i]].startswith("##") for i, token in enumerate(tokens)):
        return  # a word that looks like a continuation cannot be told from one
    found = align_by_characters(tokens, words, byte_level=False)
    assert isinstance(found, Alignment)
    assert list(found.word) == expected


def test_special_tokens_are_known_by_their_usual_names() -> None:
    kinds = {"[CLS]": Special.CLS, "<s>": Special.CLS, "[SEP]": Special.SEP, "</s>": Special.SEP, "dog": Special.NONE}
    assert {token: special_kind(token) for token in kinds} == kinds
    assert special_kind("[MASK]") == Special.NONE, "a mask stands for a word of the text"
