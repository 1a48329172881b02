"""Points in the plane whose distances are as near as can be to given ones (metric multidimensional scaling)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ITERATIONS = 1000
TOLERANCE = 1e-10


def classical(distances: Floats, dimensions: int = 2) -> Floats:
    """(item, dimension) coordinates by classical scaling (Torgerson 1952): exact where the distances are Euclidean.

    Signs are settled so that each axis's largest coordinate is positive; the result does not depend on chance.
    """
    squared = distances**2
    centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    order = np.argsort(values)[::-1][:dimensions]
    points = vectors[:, order] * np.sqrt(np.clip(values[order], 0, None))
    return points * np.where(points[np.abs(points).argmax(0), np.arange(points.shape[1])] < 0, -1.0, 1.0)


def smacof(distances: Floats, dimensions: int = 2) -> Floats:
    """(item, dimension) coordinates of least raw stress, by majorisation (de Leeuw 1977) from classical scaling."""
    points = classical(distances, dimensions)
    items = len(distances)
    before = raw_stress(points, distances)
    for _ in range(ITERATIONS):
        found = between(points)
        ratios = np.divide(distances, found, out=np.zeros_like(distances), where=found > 0)
        transform = -ratios
        transform[np.arange(items), np.arange(items)] = ratios.sum(1)
        points = transform @ points / items
        now = raw_stress(points, distances)
        if before - now <= TOLERANCE * max(before, 1e-300):
            break
        before = now
    return points


def between(points: Floats) -> Floats:
    """(item, item) Euclidean distances."""
    return np.sqrt(np.square(points[:, None] - points[None]).sum(-1))


def raw_stress(points: Floats, distances: Floats) -> float:
    """Half the summed squares of what the distances are off: 0 for a perfect map."""
    return float(np.square(between(points) - distances).sum() / 2)
