"""Recorded inputs with chosen words and special tokens, and random attention for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken, TokenisedInput

CLS, SEP, NONE = SpecialToken.CLS, SpecialToken.SEP, SpecialToken.NONE


def make_input(word_ids: Sequence[int], special_kinds: Sequence[SpecialToken], n_words: int) -> RecordedInput:
    n = len(word_ids)
    zeros = np.zeros(n, np.int32)
    tokens = TokenisedInput(
        zeros, ("x",) * n, zeros, zeros, np.array(word_ids, np.int32), np.array(special_kinds, np.int32), n_words
    )
    return RecordedInput(0, 0, 0, TextInput((sentence_from_words(["w"] * n_words),)), tokens)


INPUTS = [
    make_input([-1, 0, 1, 1, 2, -1], [CLS, NONE, NONE, NONE, NONE, SEP], 3),
    # Word 1 has no token, word 3 has three, one token is outside words, and there are two separators.
    make_input([-1, 0, 2, -1, -1, 3, 3, 3, -1], [CLS, NONE, NONE, NONE, SEP, NONE, NONE, NONE, SEP], 4),
    make_input([-1, -1], [CLS, SEP], 0),
]


def random_attention(inputs: Sequence[RecordedInput], heads: int = 2) -> torch.Tensor:
    """Attention as in a forward pass: none to padding, and rows of padding are not empty."""
    batch = TokenBatch(inputs)
    shape = len(inputs), heads, batch.padded_length, batch.padded_length
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    return scores.masked_fill(~batch.token_mask[:, None, None, :], -torch.inf).softmax(-1)
