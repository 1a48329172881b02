"""How far did each layer move? Representational similarity of the same words before and after (Kriegeskorte 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Encoder
from bertology.finetuning.examples import pad, tagged

WORDS = 200


def layer_similarity(base: Encoder, partner: Encoder, items: Sequence[Item], *, words: int = WORDS) -> list[float]:
    """For the embeddings and each layer: 1 where all pairs of words are as like as before, 0 where unrelated.

    Cosine of every two of the first `words` words, in context, each by its first piece; Pearson correlation of these
    over the upper triangle, between the two models.
    """
    before, after = (word_states(encoder, items, words) for encoder in (base, partner))
    return [_agreement(one, other) for one, other in zip(before, after, strict=True)]


@torch.inference_mode()
def word_states(encoder: Encoder, items: Sequence[Item], words: int) -> NDArray[np.float64]:
    """(layer + 1, word, width): the states of the first words of these items."""
    blank = [replace(i, parts=(replace(i.parts[0], tags=("",) * len(i.parts[0])),)) for i in items]
    examples = tagged(blank, encoder.tokenise, ("",), longest=encoder.max_pieces).examples
    states: list[NDArray[Any]] = []
    for place, example in enumerate(examples):
        hidden = encoder.run(pad(examples, [place]).shown, hidden=True).hidden
        states.append(torch.stack([layer[0, example.words] for layer in hidden]).double().numpy())
        if sum(one.shape[1] for one in states) >= words:
            break
    return np.concatenate(states, axis=1)[:, :words]


def _agreement(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    before, after = (_cosines(states)[np.triu_indices(len(states), 1)] for states in (one, other))
    return float(np.corrcoef(before, after)[0, 1])


def _cosines(states: NDArray[np.float64]) -> NDArray[np.float64]:
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit @ unit.T
