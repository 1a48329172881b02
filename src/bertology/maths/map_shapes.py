"""Attention maps made from the definitions of their shapes, with noise, to train and try classifiers on.

A map is (from, to) with rows that sum to 1. The five shapes are those of Kovaleva et al. (kovaleva2019, section 4.1):

| shape | rows look |
|---|---|
| vertical | at the same one to three columns |
| diagonal | at the piece before, at themselves or at the piece after, always the same way |
| vertical+diagonal | at both, neither with less than a third |
| block | at one side of a boundary, evenly, and never across it |
| heterogeneous | elsewhere in every row, by content, near or far around it, at columns that only some rows see |

A map has a shape where more than half of its attention goes that way: in heterogeneous maps there may be a line that
holds up to three tenths.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = np.random.Generator

SHAPES = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")

TRAINING_LENGTHS = (8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
TRAINING_NOISE = 0.35


def synthesised(shape: str, length: int, noise: float, draw: Draw) -> Floats:
    """One map of a shape; `noise` is the share of the attention that has nothing to do with it, 0 to 1."""
    pattern = _MAKERS[shape](length, draw)
    jittered = _rows(pattern * np.exp(0.4 * draw.normal(size=(length, length))))
    share = np.clip(noise * np.exp(0.3 * draw.normal(size=(length, 1))), 0, 1)
    return (1 - share) * jittered + share * _background(length, draw)


def training_maps(count: int, seed: int) -> list[tuple[Floats, int]]:
    """(map, number of its shape), as many of each shape, of the lengths and noise that classifiers may learn from."""
    draw = np.random.default_rng(seed)
    return [
        (synthesised(SHAPES[place], int(draw.choice(TRAINING_LENGTHS)), draw.uniform(0, TRAINING_NOISE), draw), place)
        for number in range(count)
        for place in [number % len(SHAPES)]
    ]


def _vertical(length: int, draw: Draw) -> Floats:
    count = int(draw.integers(1, 4))
    ends = [0, length - 1]
    columns = draw.permutation(ends + draw.choice(length, size=2, replace=False).tolist())[:count]
    row = np.zeros(length)
    np.add.at(row, columns, draw.dirichlet(np.full(count, 3.0)))
    return np.tile(row, (length, 1))


def _diagonal(length: int, draw: Draw) -> Floats:
    offsets = draw.permutation([-1, 0, 1])[: int(draw.choice([1, 1, 2]))]
    weights = draw.dirichlet(np.full(len(offsets), 3.0))
    found = np.zeros((length, length))
    for offset, weight in zip(offsets, weights, strict=True):
        places = np.arange(length) + offset
        # A row at the edge has no such neighbour and looks at the first piece or at itself.
        edge = 0 if draw.random() < 0.5 else np.arange(length)
        places = np.where((places < 0) | (places >= length), edge, places)
        found[np.arange(length), places] += weight
    return found


def _both(length: int, draw: Draw) -> Floats:
    share = draw.uniform(0.35, 0.65)
    return share * _vertical(length, draw) + (1 - share) * _diagonal(length, draw)


def _block(length: int, draw: Draw) -> Floats:
    boundary = int(np.clip(round(length * draw.uniform(0.28, 0.72)), 2, length - 2))
    side = np.arange(length) >= boundary
    inside = side[:, None] == side[None, :]
    return _rows(inside * draw.dirichlet(np.full(length, draw.uniform(2, 20)), size=length))


def _heterogeneous(length: int, draw: Draw) -> Floats:
    found = _scattered(length, draw)
    if draw.random() < 0.5:
        return found
    share = draw.uniform(0.1, 0.3)
    return (1 - share) * found + share * (_vertical, _diagonal)[int(draw.integers(2))](length, draw)


def _scattered(length: int, draw: Draw) -> Floats:
    kind = int(draw.integers(5))
    if kind == 0:
        return draw.dirichlet(np.full(length, np.exp(draw.uniform(np.log(0.05), np.log(3)))), size=length)
    if kind == 1:
        size = int(draw.integers(4, 12))
        scores = draw.normal(size=(length, size)) @ draw.normal(size=(size, length)) / np.sqrt(size)
        return _softmax(draw.uniform(0.5, 2.5) * scores)
    if kind == 2:
        distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
        width = max(3.0, length * draw.uniform(0.2, 0.5))
        return _softmax(-0.5 * (distance / width) ** 2 + draw.uniform(0.3, 1.0) * draw.normal(size=(length, length)))
    if kind == 3:
        return _nearby(length, draw)
    found = draw.dirichlet(np.full(length, 0.5), size=length)
    for column in draw.choice(length, size=min(4, length // 2), replace=False):
        rows = draw.random(length) < draw.uniform(0.15, 0.35)
        found[rows] *= 0.4
        found[rows, column] += 0.6
    return found


def _nearby(length: int, draw: Draw) -> Floats:
    """Each row looks, more or less surely, at some of the pieces around it: within reach, but never the same way."""
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    sharpness = np.exp(draw.uniform(np.log(0.5), np.log(8)))
    scores = sharpness * draw.normal(size=(length, length))
    return _softmax(np.where(distance <= int(draw.integers(4, 11)), scores, -np.inf))


def _background(length: int, draw: Draw) -> Floats:
    """Attention to anything, in half of the maps more to what is near: what models do with what is left over."""
    found = draw.dirichlet(np.full(length, np.exp(draw.uniform(np.log(0.1), np.log(5)))), size=length)
    if draw.random() < 0.5:
        return found
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return _rows((found + 1e-6) * np.exp(-distance / draw.uniform(3, 8)))


def _softmax(scores: Floats) -> Floats:
    return _rows(np.exp(scores - scores.max(1, keepdims=True)))


def _rows(weights: Floats) -> Floats:
    return weights / weights.sum(1, keepdims=True)


_MAKERS: dict[str, Callable[[int, Draw], Floats]] = {
    "vertical": _vertical,
    "diagonal": _diagonal,
    "vertical+diagonal": _both,
    "block": _block,
    "heterogeneous": _heterogeneous,
}
