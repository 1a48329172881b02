"""Nearest contextual neighbours: the words of a corpus whose states at a layer are most similar to a given state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bertology.recording.recording import Recording

CACHED_LAYERS = 2
N_RANDOM_PAIRS = 2000
HIDDEN_WORDS = "hidden.words"


@dataclass(frozen=True)
class Neighbour:
    """A word of an input of the recording, and the cosine of its state with the given one."""

    input_index: int
    word_index: int
    cosine: float


@dataclass(frozen=True)
class Neighbourhood:
    """The nearest words, the nearest first, of `n` words.

    `chance` is the mean cosine of random pairs of words at the same layer: states of many models are all similar.
    """

    neighbours: tuple[Neighbour, ...]
    chance: float
    n: int


class NeighbourIndex:
    """The states of all words of a recording; those of a layer are read when they are first needed."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._layer = lru_cache(CACHED_LAYERS)(self._read_layer)
        sizes = [len(recorded.text.words) for recorded in recording.inputs]
        self._inputs = np.repeat(np.arange(len(sizes)), sizes)
        self._words = np.concatenate([np.arange(size) for size in sizes]) if sizes else np.zeros(0, np.int64)

    def nearest(self, state: NDArray[np.floating], layer: int, n: int) -> Neighbourhood:
        """The `n` words nearest to a state at a layer; layer 0 are the embeddings."""
        states, has_state, chance = self._layer(layer)
        direction = np.asarray(state, np.float32)
        direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
        cosines = np.where(has_state, states @ direction, -np.inf)
        best = np.argsort(-cosines, kind="stable")[:n]
        neighbours = tuple(
            Neighbour(int(self._inputs[word]), int(self._words[word]), float(cosines[word]))
            for word in best.tolist()
            if has_state[word]
        )
        return Neighbourhood(neighbours, chance, int(has_state.sum()))

    def _read_layer(self, layer: int) -> tuple[NDArray[np.float32], NDArray[np.bool_], float]:
        """(word, width) states of unit length, whether each word has one, and the mean cosine of random words."""
        arrays = self.recording[HIDDEN_WORDS]
        states = np.concatenate([np.asarray(arrays[index][layer], np.float32) for index in range(len(arrays))])
        norms = np.linalg.norm(states, axis=1)
        has_state = np.isfinite(norms) & (norms > 0)
        states[has_state] /= norms[has_state, None]
        states[~has_state] = 0
        return states, has_state, _mean_cosine(states[has_state])


def _mean_cosine(states: NDArray[np.float32]) -> float:
    """The mean cosine of random pairs of different words."""
    if len(states) < 2:
        return float("nan")
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(states), N_RANDOM_PAIRS)
    second = (first + rng.integers(1, len(states), N_RANDOM_PAIRS)) % len(states)
    return float((states[first] * states[second]).sum(1).mean())
