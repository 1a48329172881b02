"""Encoders with constructed attention and hidden states: built to satisfy a claim, to violate it, or of noise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import planted
from bertology.arrays import Array, FloatArray
from bertology.corpus.example import TextInput
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelInputs, ModelOutput, Objective
from bertology.encoder.tokens import TokenisedInput

AttentionFunction = Callable[[Array, int], FloatArray]
"""Attention pattern of a head for the token ids of a sentence; the head's number varies the noise between heads."""
StateFunction = Callable[[Array, int], FloatArray]
"""Hidden states of a layer for the token ids of a sentence."""

LAYERS, HEADS, WIDTH = 12, 2, 24
CLS, SEP = 1, 2
ENGLISH = load_corpus("english")
WORD_IDS = {word: index for index, word in enumerate(sorted({w for s in ENGLISH.sentences for w in s.words}))}
PUNCTUATION = tuple(10 + WORD_IDS[sign] for sign in (".", ",") if sign in WORD_IDS)


def generator(*key: object) -> np.random.Generator:
    """A random generator that depends on the key only."""
    return np.random.default_rng(list(hashlib.sha256(repr(key).encode()).digest()[:16]))


def attention_to(*targets: int) -> AttentionFunction:
    """Equal attention to all tokens with these ids; to all tokens in a sentence without them."""

    def attention(ids: Array, head: int) -> FloatArray:
        is_target = np.isin(ids, targets)
        weights = (is_target if is_target.any() else np.ones(len(ids))).astype(float)
        return np.tile(weights / weights.sum(), (len(ids), 1))

    return attention


def uniform_attention(ids: Array, head: int) -> FloatArray:
    return np.full((len(ids), len(ids)), 1 / len(ids))


def attention_to_next(ids: Array, head: int) -> FloatArray:
    return np.roll(np.eye(len(ids)), 1, axis=1)


def random_attention(ids: Array, head: int) -> FloatArray:
    return generator("look", ids.tolist(), head).dirichlet(np.ones(len(ids)), len(ids))


def other_random_attention(ids: Array, head: int) -> FloatArray:
    return random_attention(ids, head + LAYERS * HEADS)


def word_states(ids: Array, layer: int) -> FloatArray:
    """One vector per word, regardless of context."""
    return np.stack([generator("word", int(word)).normal(size=WIDTH) for word in ids])


def random_states(ids: Array, layer: int, salt: str = "") -> FloatArray:
    """A different vector for each word in each sentence and layer."""
    return generator("nothing", salt, ids.tolist(), layer).normal(size=(len(ids), WIDTH))


def other_random_states(ids: Array, layer: int) -> FloatArray:
    return random_states(ids, layer, "other")


def cone_states(ids: Array, layer: int) -> FloatArray:
    """Vectors in a narrow cone."""
    return random_states(ids, layer) + 5.0


@dataclass(frozen=True)
class PlantedEncoder:
    """An encoder without weights: layer l has the attention of `attention[l]` and the states of `states[l]`."""

    name: str
    attention: Sequence[AttentionFunction]
    states: Sequence[StateFunction]
    layers: int = LAYERS
    heads: int = HEADS
    width: int = WIDTH
    max_length: int = 512
    task_heads: frozenset[str] = frozenset()
    causal: bool = False
    attention_windows: tuple[int | None, ...] = ()
    mask_token_id: int | None = None
    device: str = "cpu"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        return [planted.tokenise(text, WORD_IDS) for text in inputs]

    def randomised(self, seed: int = 0) -> PlantedEncoder:
        return noise_model("random")

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Objective | None = None,
    ) -> ModelOutput:
        rows = [ids[: int(mask.sum())].numpy() for ids, mask in zip(batch.input_ids, batch.attention_mask, strict=True)]
        length = batch.input_ids.shape[1]
        for layer in range(self.layers) if on_layer is not None else ():
            attention = torch.zeros(len(rows), self.heads, length, length)
            for row, ids in enumerate(rows):
                for head in range(self.heads):
                    pattern = self.attention[layer](ids, layer * self.heads + head)
                    attention[row, head, : len(ids), : len(ids)] = torch.from_numpy(pattern)
            assert on_layer is not None
            on_layer(LayerActivations(layer, attention))
        n_layers = self.layers + 1 if hidden else 0
        return ModelOutput(tuple(self._padded_states(rows, length, layer) for layer in range(n_layers)), {})

    def _padded_states(self, rows: Sequence[Array], length: int, layer: int) -> Tensor:
        states = torch.zeros(len(rows), length, self.width)
        for row, ids in enumerate(rows):
            states[row, : len(ids)] = torch.from_numpy(self.states[layer](ids, layer))
        return states


def planted_model(
    name: str,
    *,
    attention: Mapping[range, AttentionFunction] | None = None,
    states: Mapping[range, StateFunction] | None = None,
) -> PlantedEncoder:
    """A model of noise except in these layers (from 1; 0 is the embeddings)."""
    attention_by_layer: list[AttentionFunction] = [random_attention] * LAYERS
    for layers, function in (attention or {}).items():
        for layer in layers:
            attention_by_layer[layer - 1] = function
    states_by_layer: list[StateFunction] = [random_states] * (LAYERS + 1)
    for layers, function in (states or {}).items():
        for layer in layers:
            states_by_layer[layer] = function
    return PlantedEncoder(name, attention_by_layer, states_by_layer)


def noise_model(name: str = "noise") -> PlantedEncoder:
    """A model with random attention and states in every layer."""
    return planted_model(name)
