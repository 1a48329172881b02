"""Orthogonal Procrustes: the best rotation of one set of points onto another, and their similarity (schonemann1966)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray
from bertology.numerics.covariances import Covariances, centre_rows


def procrustes(covariances: Covariances) -> float:
    """Cosine of two centred sets of points after the best rotation: 1 if equal up to rotation and scale, at least 0.

    The squared Procrustes distance of the sets at norm 1 is 2 - 2 times this.
    """
    size = np.sqrt(np.trace(covariances.first) * np.trace(covariances.second))
    if size <= 0:
        return float("nan")
    return float(np.linalg.svd(covariances.cross, compute_uv=False).sum() / size)


def rotate_onto(points: NDArray[Any], reference: NDArray[Any]) -> FloatArray:
    """The centred points, rotated or reflected to lie nearest to the centred `reference`, without scaling."""
    moved, target = centre_rows(points), centre_rows(reference)
    left, _, right = np.linalg.svd(moved.T @ target, full_matrices=False)
    return moved @ left @ right
