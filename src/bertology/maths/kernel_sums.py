"""Sums over all pairs of observations of products of two kernels, without ever holding all pairs at once.

Similarities of representations that compare pairs (RSA, CKA) are functions of a few such sums. For a kernel that is
an inner product of features, sums over n x n pairs are sums over feature x feature products: a pair is never looked at
(the sum of (x_i . x_j)(y_i . y_j) is the squared norm of X'Y). Any other kernel is taken a few rows at a time. Every
sum is kept for all observations, and with each group of them left out; where all are of one group, only for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.jackknife import Groups

Floats = NDArray[np.float64]
Rows = Callable[[slice], Floats]
"""The rows of a kernel's matrix: (some, observation)."""

CELLS_AT_ONCE = 2**21


@dataclass(frozen=True)
class Marginals:
    """One kernel, for all observations and without each group: (1 + group, observation).

    `rows` are the sums of its rows over other observations, `diagonal` what an observation has with itself; 0 for an
    observation that is left out.
    """

    rows: Floats
    diagonal: Floats


@dataclass(frozen=True)
class KernelSums:
    """Two kernels: their marginals, and the sums of products over ordered pairs of different observations."""

    first: Marginals
    second: Marginals
    both: Floats
    first_squared: Floats
    second_squared: Floats
    count: Floats

    def alone(self) -> KernelSums:
        """The first kernel with itself."""
        squares = self.first_squared
        return KernelSums(self.first, self.first, squares, squares, squares, self.count)

    def turned(self) -> KernelSums:
        """The two the other way round."""
        return KernelSums(self.second, self.first, self.both, self.second_squared, self.first_squared, self.count)


def of_features(first: NDArray[Any], second: NDArray[Any], groups: Groups) -> KernelSums:
    """The sums for two inner-product kernels, from (observation, feature) arrays."""
    one, other = first.astype(np.float64), second.astype(np.float64)
    parts = [np.flatnonzero(groups == group) for group in range(_number(groups))]
    diagonals = [np.square(one).sum(1), np.square(other).sum(1)]

    def products(a: Floats, b: Floats, own: Floats) -> Floats:
        crossed = np.stack([(a[part].T @ b[part]).ravel() for part in parts])
        between = crossed @ crossed.T
        between[np.diag_indices(len(parts))] -= [own[part].sum() for part in parts]
        return _without(between)

    return KernelSums(
        _marginals(one @ np.stack([one[part].sum(0) for part in parts]).T, diagonals[0], groups),
        _marginals(other @ np.stack([other[part].sum(0) for part in parts]).T, diagonals[1], groups),
        products(one, other, diagonals[0] * diagonals[1]),
        products(one, one, np.square(diagonals[0])),
        products(other, other, np.square(diagonals[1])),
        _counts(groups),
    )


def of_kernels(first: Rows, second: Rows, groups: Groups) -> KernelSums:
    """The sums for any two kernels, a few rows of their matrices at a time."""
    size, number = len(groups), _number(groups)
    member = np.eye(number)[groups]
    between = np.zeros((3, number, number))
    sums, diagonals = np.zeros((2, size, number)), np.zeros((2, size))
    step = max(1, CELLS_AT_ONCE // size)
    for start in range(0, size, step):
        some = slice(start, min(size, start + step))
        own = np.arange(some.start, some.stop)
        blocks = [first(some).astype(np.float64), second(some).astype(np.float64)]
        for place, block in enumerate(blocks):
            diagonals[place, some] = block[own - some.start, own]
            sums[place, some] = block @ member
            block[own - some.start, own] = 0.0
        for place, (a, b) in enumerate(((0, 1), (0, 0), (1, 1))):
            between[place] += member[some].T @ ((blocks[a] * blocks[b]) @ member)
    return KernelSums(
        _marginals(sums[0], diagonals[0], groups),
        _marginals(sums[1], diagonals[1], groups),
        *(_without(part) for part in between),
        count=_counts(groups),
    )


def gaussian(vectors: NDArray[Any], width: float) -> Rows:
    """exp(-d^2 / 2 w^2) with d the Euclidean distance and w the width."""
    squared = _squared_distances(vectors)
    return lambda some: np.exp(squared(some) / (-2 * width**2))


def nearness(vectors: NDArray[Any]) -> Rows:
    """The Euclidean distance, negative: 0 for equal vectors."""
    squared = _squared_distances(vectors)
    return lambda some: -np.sqrt(squared(some))


def inner_product(vectors: NDArray[Any]) -> Rows:
    """The dot product."""
    rows = vectors.astype(np.float64)
    return lambda some: rows[some] @ rows.T


def unit_rows(vectors: NDArray[Any]) -> Floats:
    """The rows at length one; a row of zeros stays as it is. Their inner product is the cosine."""
    rows = vectors.astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12)


def median_distance(vectors: NDArray[Any], most: int = 1000) -> float:
    """The median Euclidean distance between two of the first observations."""
    rows = vectors[:most]
    squared = _squared_distances(rows)(slice(0, len(rows)))
    return float(np.sqrt(np.median(squared[np.triu_indices(len(rows), 1)])))


def _squared_distances(vectors: NDArray[Any]) -> Rows:
    # Distances do not depend on where the origin is, and rounding does.
    rows = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    squares = np.square(rows).sum(1)

    def block(some: slice) -> Floats:
        found = squares[some, None] + squares - 2 * (rows[some] @ rows.T)
        own = np.arange(*some.indices(len(rows)))
        found[own - own[0], own] = 0.0
        return np.maximum(found, 0.0, out=found)

    return block


def _number(groups: Groups) -> int:
    return int(groups.max()) + 1


def _counts(groups: Groups) -> Floats:
    return (len(groups) - np.array([0, *np.bincount(groups)], np.float64))[: _subsets(_number(groups))]


def _subsets(groups: int) -> int:
    return groups + 1 if groups > 1 else 1


def _without(between: Floats) -> Floats:
    """(1 + group,) the sum over pairs, and without all pairs that a group has a part in."""
    touched = between.sum(0) + between.sum(1) - np.diag(between)
    return (between.sum() - np.concatenate([[0.0], touched]))[: _subsets(len(between))]


def _marginals(sums: Floats, diagonal: Floats, groups: Groups) -> Marginals:
    """From (observation, group) sums of rows, an observation's own place included."""
    kept = np.ones((sums.shape[1] + 1, len(groups)))
    kept[groups + 1, np.arange(len(groups))] = 0.0
    others = sums.sum(1) - diagonal
    rows = np.concatenate([others[None], others - sums.T]) * kept
    subsets = _subsets(sums.shape[1])
    return Marginals(rows[:subsets], (diagonal * kept)[:subsets])
