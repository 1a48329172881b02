"""The text of a request: typed, or an example of the corpus; with tokens masked, replaced or deleted."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import Sentence, sentence_from_text
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.token_edits import EditAction, TokenEdit, edit_tokens, mask_token
from bertology.errors import Refusal
from bertology.server.limits import LIMITS

Text = Annotated[str, Field(max_length=LIMITS.text_characters)]


class RequestModel(BaseModel):
    """A request; fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EditRequest(RequestModel):
    """What is done with the token at a position, counted from 0 before any edit."""

    position: int = Field(ge=0)
    action: EditAction
    text: Annotated[str, Field(max_length=200)] = ""


class TextRequest(RequestModel):
    """A text or a pair, or the number of an example of the corpus, counted from 0; and the model that reads it.

    The empty model is the first one. `against` names no role: both models are called by their names.
    """

    text: Text = ""
    text_b: Text | None = None
    example: int | None = Field(default=None, ge=0)
    corpus: str = ""
    model: str = ""
    edits: list[EditRequest] = Field(default=[], max_length=64)


def tokenise_request(encoder: TaskEncoder, request: TextRequest, corpus: Corpus | None) -> RecordedInput:
    """The input of the model with its edits; refused if it is empty or too long."""
    text_input = _text_input(encoder, request, corpus)
    (tokens,) = encoder.tokenise([text_input])
    edits = [TokenEdit(edit.position, edit.action, edit.text) for edit in request.edits]
    tokens = edit_tokens(encoder, tokens, edits) if edits else tokens
    limit = min(encoder.max_length, LIMITS.tokens)
    if len(tokens) > limit:
        raise Refusal(
            f"The text has {len(tokens)} tokens",
            f"at most {limit}: {encoder.name} takes {encoder.max_length}, the workbench {LIMITS.tokens}",
            "Shorten the text; `bertology view` shows longer ones",
        )
    return RecordedInput(0, 0, 0, text_input, tokens)


def _text_input(encoder: TaskEncoder, request: TextRequest, corpus: Corpus | None) -> TextInput:
    if request.example is not None:
        assert corpus is not None, "the corpus of an example is read before"
        if request.example >= len(corpus):
            last = len(corpus) - 1
            raise Refusal(f"There is no example {request.example}", f"a number from 0 to {last}", "Choose another")
        return corpus[request.example].text_inputs[0]
    texts = [request.text] if request.text_b is None else [request.text, request.text_b]
    if not all(text.strip() for text in texts):
        raise Refusal("The text is empty", "a text of at least one word", "Write a sentence")
    mask = mask_token(encoder)
    return TextInput(tuple(split_typed_text(text, mask) for text in texts))


def split_typed_text(text: str, mask: str) -> Sentence:
    """The words of a text; a typed mask token is one word."""
    sentence = sentence_from_text(text)
    if not mask or mask not in text:
        return sentence
    masks = [match.span() for match in re.finditer(re.escape(mask), text)]
    outside = [
        (start, end)
        for start, end in sentence.offsets
        if not any(first < end and start < last for first, last in masks)
    ]
    offsets = tuple(sorted([*outside, *masks]))
    return replace(sentence, words=tuple(text[start:end] for start, end in offsets), offsets=offsets)
