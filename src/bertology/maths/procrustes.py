"""The rotation that brings one set of points nearest to another (schonemann1966), and how near that is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.covariances import Covariances, centred

Floats = NDArray[np.float64]


def procrustes(given: Covariances) -> float:
    """Cosine of two centred sets of points after the best rotation and scaling: 1 equal up to both, 0 least.

    The squared Procrustes distance of the sets at norm one is 2 - 2 times this.
    """
    size = np.sqrt(np.trace(given.first) * np.trace(given.second))
    if size <= 0:
        return float("nan")
    return float(np.linalg.svd(given.crossed, compute_uv=False).sum() / size)


def rotated(points: NDArray[Any], to: NDArray[Any]) -> Floats:
    """The centred points turned (or mirrored) so as to lie nearest to `to`, centred: no scaling."""
    moved, target = centred(points), centred(to)
    left, _, right = np.linalg.svd(moved.T @ target, full_matrices=False)
    return moved @ left @ right
