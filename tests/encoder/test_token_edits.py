from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bertology
import tiny_models
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.token_edits import TokenEdit, edit_tokens
from bertology.encoder.tokens import TokenisedInput
from bertology.errors import Refusal


def tokenise(encoder: Any, text: str) -> TokenisedInput:
    return encoder.tokenise([TextInput((sentence_from_text(text),))])[0]


def test_edits_give_the_tokens_of_the_edited_text() -> None:
    encoder = bertology.load("tiny")
    tokens = tokenise(encoder, "the old man opened the door")
    edits = [TokenEdit(2, "mask"), TokenEdit(3, "replace", "woman"), TokenEdit(6, "delete")]
    edited = edit_tokens(encoder, tokens, edits)
    assert edited.tokens[1:4] == ("the", "[MASK]", "woman")
    np.testing.assert_array_equal(edited.ids, tokenise(encoder, "the [MASK] woman opened door").ids)
    assert len(edited.word_ids) == len(edited.segment_ids) == len(edited.special_kinds) == len(edited)


def test_a_replacement_of_several_tokens_belongs_to_the_word() -> None:
    encoder = bertology.load("tiny")
    tokens = tokenise(encoder, "the man")
    edited = edit_tokens(encoder, tokens, [TokenEdit(2, "replace", "zx")])
    assert edited.tokens == ("[CLS]", "the", "z", "##x", "[SEP]")
    assert edited.word_ids.tolist() == [-1, 0, 1, 1, -1]


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ([TokenEdit(0, "mask")], "special token"),
        ([TokenEdit(9, "mask")], "no token at position 9"),
        ([TokenEdit(1, "mask"), TokenEdit(1, "delete")], "twice"),
        ([TokenEdit(1, "replace", " ")], "no tokens"),
    ],
)
def test_impossible_edits_are_refused(edits: list[TokenEdit], problem: str) -> None:
    encoder = bertology.load("tiny")
    with pytest.raises(Refusal, match=problem):
        edit_tokens(encoder, tokenise(encoder, "the man"), edits)


def test_masking_needs_a_mask_token() -> None:

    encoder = tiny_models.encoder("gpt2")
    with pytest.raises(Refusal, match="no mask token"):
        edit_tokens(encoder, tokenise(encoder, "the man"), [TokenEdit(1, "mask")])
