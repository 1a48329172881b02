"""Covariances of two sets of features over the same observations, of all of them and without each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.jackknife import Groups

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Covariances:
    """Summed products of centred features, (feature, feature): X'X, Y'Y, X'Y; over `count` observations."""

    first: Floats
    second: Floats
    crossed: Floats
    count: int


def covariances(first: NDArray[Any], second: NDArray[Any], groups: Groups | None) -> Iterator[Covariances]:
    """Those of all observations, then, where there are groups, those without each of them."""
    # Centred first: what is left to subtract for a part of the observations is small, and so is its rounding.
    joined = np.concatenate([centred(first), centred(second)], axis=1)
    width, total = first.shape[1], joined.T @ joined
    yield _cut(total, width, len(joined))
    for group in range(0 if groups is None else int(groups.max()) + 1):
        out = joined[groups == group]
        mean, left = -out.sum(0), len(joined) - len(out)
        yield _cut(total - out.T @ out - np.outer(mean, mean) / left, width, left)


def centred(vectors: NDArray[Any]) -> Floats:
    """The rows less their mean."""
    rows = vectors.astype(np.float64)
    return rows - rows.mean(0)


def _cut(total: Floats, width: int, count: int) -> Covariances:
    return Covariances(total[:width, :width], total[width:, width:], total[:width, width:], count)
