"""k-nearest-neighbour and nearest-centroid classification by cosine, with ties broken independently of rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray

IndexArray = NDArray[np.intp]

TIE = 1e-6
"""Similarities that differ by less count as equal: the rounding error of single precision."""


def cosines(first: NDArray[Any], second: NDArray[Any]) -> FloatArray:
    """(..., m, n) cosines of (..., m, width) with (..., n, width); 0 where a vector is 0."""
    return unit_vectors(first) @ np.swapaxes(unit_vectors(second), -1, -2)


def unit_vectors(vectors: NDArray[Any]) -> FloatArray:
    """The vectors scaled to length 1; zero vectors stay zero."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)


def knn_predict(similarities: NDArray[Any], classes: NDArray[np.integer], n_classes: int, k: int) -> IndexArray:
    """(example,) the class of most of the k nearest neighbours, from (example, neighbour) similarities.

    Neighbours as similar as the k-th share the remaining votes, so that identical vectors give the most frequent class.
    Of classes with equal votes the one whose farthest neighbour is nearer wins, then the lower class number.
    """
    n_examples, n_neighbours = similarities.shape
    k = min(k, n_neighbours)
    kth = np.sort(similarities, 1)[:, n_neighbours - k, None]
    nearer, tied = similarities > kth + TIE, np.abs(similarities - kth) <= TIE
    vote = nearer + tied * (k - nearer.sum(1, keepdims=True)) / tied.sum(1, keepdims=True)
    votes, farthest = np.zeros((n_examples, n_classes)), np.full((n_examples, n_classes), -np.inf)
    for number in range(n_classes):
        members = classes == number
        votes[:, number] = vote[:, members].sum(1)
        counted = np.where(vote[:, members] > 0, similarities[:, members], np.inf)
        farthest[:, number] = counted.min(1, initial=np.inf)
    leading = votes > votes.max(1, keepdims=True) - TIE
    farthest = np.where(leading, farthest, -np.inf)
    return (farthest > farthest.max(1, keepdims=True) - TIE).argmax(1)


def centroids(vectors: NDArray[Any], classes: NDArray[np.integer], n_classes: int) -> FloatArray:
    """(..., class, width) the mean of each class of (..., known, width); NaN for a class without members."""
    members = (classes == np.arange(n_classes)[:, None]).astype(np.float64)
    sizes = members.sum(1, keepdims=True)
    weights = np.divide(members, sizes, out=np.full_like(members, np.nan), where=sizes > 0)
    return weights @ vectors.astype(np.float64)


def nearest_centroid_predict(
    vectors: NDArray[Any], train_vectors: NDArray[Any], classes: NDArray[np.integer], n_classes: int
) -> IndexArray:
    """(..., example) the class of the centroid with the highest cosine; ties go to the lower class number."""
    similarities = cosines(vectors, centroids(train_vectors, classes, n_classes))
    return (similarities > similarities.max(-1, keepdims=True) - TIE).argmax(-1)
