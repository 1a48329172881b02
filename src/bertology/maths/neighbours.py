"""Classes by the nearest neighbours or the nearest centroid, from similarities: knows nothing of BERT."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

TIE = 1e-6
"""Similarities that differ by less are taken for equal: it is what single precision leaves of equal vectors."""


def cosines(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """(..., m, n) cosines of (..., m, width) with (..., n, width); 0 where a vector is 0."""
    return units(first) @ np.swapaxes(units(second), -1, -2)


def units(vectors: NDArray[Any]) -> Floats:
    """The vectors with length 1; those of length 0 stay."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)


def by_neighbours(similarities: NDArray[Any], classes: NDArray[np.integer], count: int, k: int) -> Places:
    """(case,) the class, of `count`, that most of the k most similar of (case, known) have.

    Where several are as similar as the k-th, they share the seats that are left: vectors that are all alike give the
    most frequent class. Of classes with as many votes the one that reaches them first wins, then the lower number.
    """
    cases, known = similarities.shape
    k = min(k, known)
    last = np.sort(similarities, 1)[:, known - k, None]
    nearer, level = similarities > last + TIE, np.abs(similarities - last) <= TIE
    seats = nearer + level * (k - nearer.sum(1, keepdims=True)) / level.sum(1, keepdims=True)
    votes, reached = np.zeros((cases, count)), np.full((cases, count), -np.inf)
    for number in range(count):
        own = classes == number
        votes[:, number] = seats[:, own].sum(1)
        counted = np.where(seats[:, own] > 0, similarities[:, own], np.inf)
        reached[:, number] = counted.min(1, initial=np.inf)
    leading = votes > votes.max(1, keepdims=True) - TIE
    reached = np.where(leading, reached, -np.inf)
    return (reached > reached.max(1, keepdims=True) - TIE).argmax(1)


def centroids(vectors: NDArray[Any], classes: NDArray[np.integer], count: int) -> Floats:
    """(..., class, width) the mean of each class of (..., known, width); NaN for a class without members."""
    members = (classes == np.arange(count)[:, None]).astype(np.float64)
    sizes = members.sum(1, keepdims=True)
    shares = np.divide(members, sizes, out=np.full_like(members, np.nan), where=sizes > 0)
    return shares @ vectors.astype(np.float64)


def by_centroids(vectors: NDArray[Any], known: NDArray[Any], classes: NDArray[np.integer], count: int) -> Places:
    """(..., case) the class whose centroid has the highest cosine; of centroids as near the lower number."""
    near = cosines(vectors, centroids(known, classes, count))
    return (near > near.max(-1, keepdims=True) - TIE).argmax(-1)
