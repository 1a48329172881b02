"""Representational similarity of each layer before and after fine-tuning (Kriegeskorte 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.corpus.corpus import Example
from bertology.encoder.encoder import Encoder
from bertology.training.encoded_examples import encode_tagging, pad_examples

WORDS = 200


def layer_similarity(base: Encoder, partner: Encoder, items: Sequence[Example], *, words: int = WORDS) -> list[float]:
    """For the embeddings and each layer: 1 where all pairs of words are as like as before, 0 where unrelated.

    Cosine of every two of the first `words` words, in context, each by its first piece; Pearson correlation of these
    over the upper triangle, between the two models.
    """
    before, after = (word_states(encoder, items, words) for encoder in (base, partner))
    return [_agreement(one, other) for one, other in zip(before, after, strict=True)]


@torch.inference_mode()
def word_states(encoder: Encoder, items: Sequence[Example], words: int) -> NDArray[np.float64]:
    """(layer + 1, word, width): the states of the first words of these items."""
    blank = [replace(i, segments=(replace(i.segments[0], tags=("",) * len(i.segments[0])),)) for i in items]
    examples = encode_tagging(blank, encoder.tokenise, ("",), max_length=encoder.max_length).encoded
    states: list[NDArray[Any]] = []
    for place, example in enumerate(examples):
        hidden = encoder.forward(pad_examples(examples, [place]).inputs, hidden=True).hidden_states
        states.append(torch.stack([layer[0, example.labelled_positions] for layer in hidden]).double().numpy())
        if sum(one.shape[1] for one in states) >= words:
            break
    return np.concatenate(states, axis=1)[:, :words]


def _agreement(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    before, after = (_cosines(states)[np.triu_indices(len(states), 1)] for states in (one, other))
    return float(np.corrcoef(before, after)[0, 1])


def _cosines(states: NDArray[np.float64]) -> NDArray[np.float64]:
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit @ unit.T
