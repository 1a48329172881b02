"""Edits of single tokens of an input: mask, replace or delete them; all other tokens stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import Encoder
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.errors import Refusal, count_noun

EditAction = Literal["mask", "replace", "delete"]
ARRAYS = ("ids", "type_ids", "segment_ids", "word_ids", "special_kinds")


@dataclass(frozen=True)
class TokenEdit:
    """What is done with the token at a position, counted from 0; `text` is what replaces it."""

    position: int
    action: EditAction
    text: str = ""


def edit_tokens(encoder: Encoder, tokens: TokenisedInput, edits: Sequence[TokenEdit]) -> TokenisedInput:
    """The tokens after all edits, whose positions are those before any edit.

    What replaces a token belongs to its word. Special tokens cannot be edited, and a position only once.
    """
    by_position = {edit.position: edit for edit in edits}
    if len(by_position) < len(edits):
        raise Refusal("A token is edited twice", "one edit for each position", "Remove one of the edits")
    for edit in edits:
        _check_edit(tokens, edit)
    arrays: dict[str, list[Any]] = {name: [] for name in ARRAYS}
    strings: list[str] = []
    for position in range(len(tokens)):
        edit = by_position.get(position)
        for token_id, text in _edited(encoder, tokens, position, edit):
            strings.append(text)
            for name in ARRAYS:
                arrays[name].append(token_id if name == "ids" else getattr(tokens, name)[position])
    return replace(
        tokens, tokens=tuple(strings), **{name: np.asarray(values, np.int32) for name, values in arrays.items()}
    )


def _check_edit(tokens: TokenisedInput, edit: TokenEdit) -> None:
    if not 0 <= edit.position < len(tokens):
        raise Refusal(
            f"There is no token at position {edit.position}",
            f"a position from 0 to {len(tokens) - 1}: the text has {count_noun(len(tokens), 'tokens')}",
            "Choose a token of the text",
        )
    if tokens.special_kinds[edit.position] != SpecialToken.NONE:
        raise Refusal(
            f"{tokens.tokens[edit.position]} at position {edit.position} is a special token",
            "a token of the text",
            "Special tokens cannot be masked, replaced or deleted",
        )


def _edited(encoder: Encoder, tokens: TokenisedInput, position: int, edit: TokenEdit | None) -> list[tuple[int, str]]:
    """The ids and strings that stand where the token stood."""
    if edit is None:
        return [(int(tokens.ids[position]), tokens.tokens[position])]
    if edit.action == "delete":
        return []
    if edit.action == "mask":
        if encoder.mask_token_id is None:
            raise Refusal(
                f"{encoder.name} has no mask token", "a masked language model", "Replace or delete the token instead"
            )
        return [(encoder.mask_token_id, mask_token(encoder))]
    (new,) = encoder.tokenise([TextInput((sentence_from_text(edit.text),))])
    replacement = [
        (int(new.ids[index]), new.tokens[index])
        for index in range(len(new))
        if new.special_kinds[index] == SpecialToken.NONE
    ]
    if not replacement:
        raise Refusal(
            f"The token at position {edit.position} is replaced by {edit.text!r}, which has no tokens",
            "a word",
            "Write a word, or delete the token",
        )
    return replacement


def mask_token(encoder: Any) -> str:
    """The string of the mask token; empty if the model has none."""
    tokenizer: Any = getattr(encoder, "hf_tokenizer", None)
    return str(getattr(tokenizer, "mask_token", None) or "")
