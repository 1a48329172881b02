"""Representational similarity of each layer before and after fine-tuning (Kriegeskorte 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.training.encoded_examples import encode_tagging, pad_examples

MAX_WORDS = 200


def layer_similarity(
    base: Encoder, finetuned: Encoder, examples: Sequence[Example], *, max_words: int = MAX_WORDS
) -> list[float]:
    """RSA of the embeddings and each layer: 1 if all pairs of words are as similar as before, 0 if unrelated.

    Pearson correlation between the two models of the cosines of all pairs of the first `max_words` words in context,
    each represented by its first token.
    """
    before, after = (word_states(encoder, examples, max_words) for encoder in (base, finetuned))
    return [_rsa(first, second) for first, second in zip(before, after, strict=True)]


@torch.inference_mode()
def word_states(encoder: Encoder, examples: Sequence[Example], max_words: int) -> NDArray[np.float64]:
    """(layer + 1, word, width): the hidden states of the first words of these examples."""
    untagged = [_with_empty_tags(example) for example in examples]
    encoded = encode_tagging(untagged, encoder.tokenise, ("",), max_length=encoder.max_length).encoded
    states: list[NDArray[Any]] = []
    for index, example in enumerate(encoded):
        hidden = encoder.forward(pad_examples(encoded, [index]).inputs, hidden=True).hidden_states
        states.append(torch.stack([layer[0, example.labelled_positions] for layer in hidden]).double().numpy())
        if sum(example_states.shape[1] for example_states in states) >= max_words:
            break
    return np.concatenate(states, axis=1)[:, :max_words]


def _with_empty_tags(example: Example) -> Example:
    """An example whose words all have the same tag, so that the first token of each word is labelled."""
    sentence = example.segments[0]
    return replace(example, segments=(replace(sentence, tags=("",) * len(sentence)),))


def _rsa(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    before, after = (_cosines(states)[np.triu_indices(len(states), 1)] for states in (first, second))
    return float(np.corrcoef(before, after)[0, 1])


def _cosines(states: NDArray[np.float64]) -> NDArray[np.float64]:
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit @ unit.T
