"""Covariances of two sets of features over the same observations: of all of them, and without each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray
from bertology.estimates.jackknife import GroupIndices


@dataclass(frozen=True)
class Covariances:
    """Sums of products of centred features, (feature, feature): X'X, Y'Y and X'Y over `count` observations."""

    first: FloatArray
    second: FloatArray
    cross: FloatArray
    count: int


def covariances(first: NDArray[Any], second: NDArray[Any], groups: GroupIndices | None) -> Iterator[Covariances]:
    """Covariances of all observations and then, if there are groups, without each group."""
    # Centred first: the mean to subtract for a part of the observations is then small, and so is its rounding error.
    joined = np.concatenate([centre_rows(first), centre_rows(second)], axis=1)
    width, total = first.shape[1], joined.T @ joined
    yield _split_covariances(total, width, len(joined))
    for group in range(0 if groups is None else int(groups.max()) + 1):
        left_out = joined[groups == group]
        mean, count = -left_out.sum(0), len(joined) - len(left_out)
        yield _split_covariances(total - left_out.T @ left_out - np.outer(mean, mean) / count, width, count)


def centre_rows(vectors: NDArray[Any]) -> FloatArray:
    """The rows minus their mean."""
    rows = vectors.astype(np.float64)
    return rows - rows.mean(0)


def _split_covariances(total: FloatArray, width: int, count: int) -> Covariances:
    return Covariances(total[:width, :width], total[width:, width:], total[:width, width:], count)
