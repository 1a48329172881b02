"""Hidden states of words: the mean over each word's tokens, computed in the pass or from recorded token states.

One word takes (layers + 1) x width numbers: 20 kB for 12 layers of width 384 in single precision, half of that in half
precision. 12,500 sentences of running text are 204,000 words: 4 GB, or 2 GB in half precision, in memory without a
store and on disk with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Array, LazySequence
from bertology.encoder.tokens import TokenisedInput
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import RecordedInput, TokenBatch


def word_weights(batch: TokenBatch) -> Tensor:
    """(batch, word, token): the weight of each token in the mean of its word; 0 for tokens of other words."""
    max_words = max(recorded.tokens.n_words for recorded in batch.inputs)
    is_token_of_word = batch.word_ids[:, None] == torch.arange(max_words, device=batch.word_ids.device)[:, None]
    return is_token_of_word / is_token_of_word.sum(-1, keepdim=True).clamp(min=1)


def mean_token_states(states: Array, tokens: TokenisedInput) -> Array:
    """(layer, word, width) from (layer, token, width); zeros for a word without tokens."""
    is_token_of_word = np.arange(tokens.n_words)[:, None] == tokens.word_ids
    weights = (is_token_of_word / is_token_of_word.sum(1, keepdims=True).clip(min=1)).astype(np.float32)
    return (weights @ states.astype(np.float32)).astype(states.dtype)


class WordStates(LazySequence[Array]):
    """Word states of each recorded input, computed on access from the recorded token states."""

    def __init__(self, inputs: Sequence[RecordedInput], hidden: Sequence[Array]) -> None:
        self._inputs = inputs
        self._hidden = hidden

    def __len__(self) -> int:
        return len(self._inputs)

    def load(self, index: int) -> Array:
        """(layer, word, width) states of one input."""
        return mean_token_states(self._hidden[index], self._inputs[index].tokens)
