"""Models whose attention and states are made by hand: built to satisfy a finding, to violate it, or of noise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import planted
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Input
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Batch, Objective, Output
from bertology.encoder.pieces import Pieces

Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Look = Callable[[Ints, int], Floats]
"""The map of a head for the ids of a sentence; the number makes noise differ from head to head."""
State = Callable[[Ints, int], Floats]
"""The states of a layer, by its number, for the ids of a sentence."""

LAYERS, HEADS, WIDTH = 12, 2, 24
CLS, SEP = 1, 2
ENGLISH = corpus_named("english")
WORDS = {word: place for place, word in enumerate(sorted({w for s in ENGLISH.sentences for w in s.words}))}
STOPS = tuple(10 + WORDS[mark] for mark in (".", ",") if mark in WORDS)


def generator(*parts: object) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(repr(parts).encode()).digest()[:16]))


def looking_at(*targets: int) -> Look:
    """All of it, evenly, on pieces with these ids; on all pieces where a sentence has none."""

    def look(ids: Ints, head: int) -> Floats:
        hit = np.isin(ids, targets)
        share = (hit if hit.any() else np.ones(len(ids))).astype(float)
        return np.tile(share / share.sum(), (len(ids), 1))

    return look


def evenly(ids: Ints, head: int) -> Floats:
    return np.full((len(ids), len(ids)), 1 / len(ids))


def at_the_next(ids: Ints, head: int) -> Floats:
    return np.roll(np.eye(len(ids)), 1, axis=1)


def at_random(ids: Ints, head: int) -> Floats:
    return generator("look", ids.tolist(), head).dirichlet(np.ones(len(ids)), len(ids))


def at_other_random(ids: Ints, head: int) -> Floats:
    return at_random(ids, head + LAYERS * HEADS)


def of_words(ids: Ints, layer: int) -> Floats:
    """One vector a word, whatever stands around it."""
    return np.stack([generator("word", int(word)).normal(size=WIDTH) for word in ids])


def of_nothing(ids: Ints, layer: int, salt: str = "") -> Floats:
    """Another vector for each word in each sentence and layer."""
    return generator("nothing", salt, ids.tolist(), layer).normal(size=(len(ids), WIDTH))


def of_other_nothing(ids: Ints, layer: int) -> Floats:
    return of_nothing(ids, layer, "other")


def in_a_cone(ids: Ints, layer: int) -> Floats:
    """Vectors that all point to one side."""
    return of_nothing(ids, layer) + 5.0


@dataclass(frozen=True)
class PlantedEncoder:
    """An encoder that computes nothing: layer l looks as `looks[l]` says and has the states of `states[l]`."""

    name: str
    looks: Sequence[Look]
    states: Sequence[State]
    layers: int = LAYERS
    heads: int = HEADS
    width: int = WIDTH
    max_pieces: int = 512
    outputs: frozenset[str] = frozenset()
    causal: bool = False
    reach: tuple[int | None, ...] = ()
    mask_id: int | None = None
    device: str = "cpu"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        return [planted.pieces_of(shown, WORDS) for shown in inputs]

    def randomised(self, seed: int = 0) -> PlantedEncoder:
        return noise("random")

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> Output:
        rows = [row[: int(mask.sum())].numpy() for row, mask in zip(batch.ids, batch.mask, strict=True)]
        for layer in range(self.layers) if on_layer is not None else ():
            maps = torch.zeros(len(rows), self.heads, *batch.ids.shape[1:], batch.ids.shape[1])
            for row, ids in enumerate(rows):
                for head in range(self.heads):
                    look = self.looks[layer](ids, layer * self.heads + head)
                    maps[row, head, : len(ids), : len(ids)] = torch.from_numpy(look)
            assert on_layer is not None
            on_layer(LayerActivations(layer, maps))
        states = tuple(self._padded(rows, batch.ids, layer) for layer in range(self.layers + 1)) if hidden else ()
        return Output(states, {})

    def _padded(self, rows: Sequence[Ints], like: Tensor, layer: int) -> Tensor:
        states = torch.zeros(*like.shape, self.width)
        for row, ids in enumerate(rows):
            states[row, : len(ids)] = torch.from_numpy(self.states[layer](ids, layer))
        return states


def model(
    name: str, *, looks: dict[range, Look] | None = None, states: dict[range, State] | None = None
) -> PlantedEncoder:
    """A model of noise but for these layers (from 1; 0 are the embeddings)."""
    every: list[Look] = [at_random] * LAYERS
    for span, look in (looks or {}).items():
        for layer in span:
            every[layer - 1] = look
    held: list[State] = [of_nothing] * (LAYERS + 1)
    for span, state in (states or {}).items():
        for layer in span:
            held[layer] = state
    return PlantedEncoder(name, every, held)


def noise(name: str = "noise") -> PlantedEncoder:
    """A model of nothing but noise."""
    return model(name)
