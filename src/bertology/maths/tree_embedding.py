"""Trees in space: the embedding whose squared distances are tree distances, and layouts in the plane; no BERT here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.spanning_trees import ancestors

Floats = NDArray[np.float64]


def pythagorean(heads: Sequence[int]) -> Floats:
    """(node, node): every node one step from its head along a direction of its own.

    The squared distance between any two nodes is then the length of the path between them (reif2019). Directions are
    the axes: the first coordinate of a root, which nothing moves along, stays 0.
    """
    found = ancestors(heads).astype(np.float64)
    roots = [node for node, head in enumerate(heads) if head < 0]
    found[:, roots] = 0
    return found


def in_plane(points: NDArray[Any]) -> Floats:
    """(point, 2) along the two directions of greatest variance, centred; zeros where there are fewer directions."""
    centred = np.asarray(points, np.float64) - np.mean(points, 0, dtype=np.float64)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    kept = left[:, :2] * lengths[:2]
    found = np.zeros((len(centred), 2))
    found[:, : kept.shape[1]] = kept
    # The sign of a singular vector is arbitrary: the largest coordinate is made positive.
    for axis in range(2):
        largest = np.abs(found[:, axis]).argmax()
        found[:, axis] *= -1 if found[largest, axis] < 0 else 1
    return found


def turned_onto(points: NDArray[Any], target: NDArray[Any]) -> Floats:
    """The points turned and mirrored, not stretched, to lie as near as they can to the target (Procrustes)."""
    first, second = (np.asarray(some, np.float64) - np.mean(some, 0, dtype=np.float64) for some in (points, target))
    left, _, right = np.linalg.svd(first.T @ second)
    return first @ left @ right
