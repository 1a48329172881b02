"""Synthetic attention patterns of five classes, with noise, to train and test classifiers.

A pattern is (from, to) with rows that sum to 1. The classes are those of Kovaleva et al. (2019, section 4.1):

| class | rows attend to |
|---|---|
| vertical | the same one to three columns |
| diagonal | the previous token, themselves or the next token, all in the same way |
| vertical and diagonal | both, each with at least a third of the attention |
| block | one side of a boundary, evenly, and never across it |
| heterogeneous | different targets in each row: by content, nearby or distant, or columns that only some rows attend to
|

A pattern belongs to a class if more than half of its attention follows it: heterogeneous patterns may contain a line
with up to three tenths of the attention.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bertology.arrays import FloatArray

Rng = np.random.Generator

PATTERN_CLASSES = ("vertical", "diagonal", "vertical and diagonal", "block", "heterogeneous")

TRAINING_LENGTHS = (8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
TRAINING_NOISE = 0.35


def synthetic_attention(pattern_class: str, length: int, noise: float, rng: Rng) -> FloatArray:
    """One pattern of a class; `noise` is the fraction of the attention that does not follow it, 0 to 1."""
    pattern = _GENERATORS[pattern_class](length, rng)
    jittered = _normalise_rows(pattern * np.exp(0.4 * rng.normal(size=(length, length))))
    noise_weight = np.clip(noise * np.exp(0.3 * rng.normal(size=(length, 1))), 0, 1)
    return (1 - noise_weight) * jittered + noise_weight * _background_attention(length, rng)


def synthetic_training_set(size: int, seed: int) -> list[tuple[FloatArray, int]]:
    """(pattern, index of its class), equally many of each class, of the lengths and noise for training."""
    rng = np.random.default_rng(seed)
    examples: list[tuple[FloatArray, int]] = []
    for number in range(size):
        index = number % len(PATTERN_CLASSES)
        length, noise = int(rng.choice(TRAINING_LENGTHS)), rng.uniform(0, TRAINING_NOISE)
        examples.append((synthetic_attention(PATTERN_CLASSES[index], length, noise, rng), index))
    return examples


def _vertical_attention(length: int, rng: Rng) -> FloatArray:
    n_columns = int(rng.integers(1, 4))
    ends = [0, length - 1]
    columns = rng.permutation(ends + rng.choice(length, size=2, replace=False).tolist())[:n_columns]
    row = np.zeros(length)
    np.add.at(row, columns, rng.dirichlet(np.full(n_columns, 3.0)))
    return np.tile(row, (length, 1))


def _diagonal_attention(length: int, rng: Rng) -> FloatArray:
    offsets = rng.permutation([-1, 0, 1])[: int(rng.choice([1, 1, 2]))]
    weights = rng.dirichlet(np.full(len(offsets), 3.0))
    pattern = np.zeros((length, length))
    for offset, weight in zip(offsets, weights, strict=True):
        targets = np.arange(length) + offset
        # A row at the edge has no such neighbour and attends to the first token or to itself.
        edge = 0 if rng.random() < 0.5 else np.arange(length)
        targets = np.where((targets < 0) | (targets >= length), edge, targets)
        pattern[np.arange(length), targets] += weight
    return pattern


def _vertical_and_diagonal_attention(length: int, rng: Rng) -> FloatArray:
    weight = rng.uniform(0.35, 0.65)
    return weight * _vertical_attention(length, rng) + (1 - weight) * _diagonal_attention(length, rng)


def _block_attention(length: int, rng: Rng) -> FloatArray:
    boundary = int(np.clip(round(length * rng.uniform(0.28, 0.72)), 2, length - 2))
    side = np.arange(length) >= boundary
    inside = side[:, None] == side[None, :]
    return _normalise_rows(inside * rng.dirichlet(np.full(length, rng.uniform(2, 20)), size=length))


def _heterogeneous_attention(length: int, rng: Rng) -> FloatArray:
    pattern = _scattered_attention(length, rng)
    if rng.random() < 0.5:
        return pattern
    weight = rng.uniform(0.1, 0.3)
    line = (_vertical_attention, _diagonal_attention)[int(rng.integers(2))]
    return (1 - weight) * pattern + weight * line(length, rng)


def _scattered_attention(length: int, rng: Rng) -> FloatArray:
    kind = int(rng.integers(5))
    if kind == 0:
        return rng.dirichlet(np.full(length, np.exp(rng.uniform(np.log(0.05), np.log(3)))), size=length)
    if kind == 1:
        size = int(rng.integers(4, 12))
        scores = rng.normal(size=(length, size)) @ rng.normal(size=(size, length)) / np.sqrt(size)
        return _softmax(rng.uniform(0.5, 2.5) * scores)
    if kind == 2:
        distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
        width = max(3.0, length * rng.uniform(0.2, 0.5))
        return _softmax(-0.5 * (distance / width) ** 2 + rng.uniform(0.3, 1.0) * rng.normal(size=(length, length)))
    if kind == 3:
        return _nearby_attention(length, rng)
    pattern = rng.dirichlet(np.full(length, 0.5), size=length)
    for column in rng.choice(length, size=min(4, length // 2), replace=False):
        rows = rng.random(length) < rng.uniform(0.15, 0.35)
        pattern[rows] *= 0.4
        pattern[rows, column] += 0.6
    return pattern


def _nearby_attention(length: int, rng: Rng) -> FloatArray:
    """Each row attends, more or less sharply, to some tokens within a window, differently from row to row."""
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    sharpness = np.exp(rng.uniform(np.log(0.5), np.log(8)))
    scores = sharpness * rng.normal(size=(length, length))
    return _softmax(np.where(distance <= int(rng.integers(4, 11)), scores, -np.inf))


def _background_attention(length: int, rng: Rng) -> FloatArray:
    """Noise: random attention, in half of the patterns more to nearby tokens."""
    pattern = rng.dirichlet(np.full(length, np.exp(rng.uniform(np.log(0.1), np.log(5)))), size=length)
    if rng.random() < 0.5:
        return pattern
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return _normalise_rows((pattern + 1e-6) * np.exp(-distance / rng.uniform(3, 8)))


def _softmax(scores: FloatArray) -> FloatArray:
    return _normalise_rows(np.exp(scores - scores.max(1, keepdims=True)))


def _normalise_rows(weights: FloatArray) -> FloatArray:
    return weights / weights.sum(1, keepdims=True)


_GENERATORS: dict[str, Callable[[int, Rng], FloatArray]] = {
    "vertical": _vertical_attention,
    "diagonal": _diagonal_attention,
    "vertical and diagonal": _vertical_and_diagonal_attention,
    "block": _block_attention,
    "heterogeneous": _heterogeneous_attention,
}
