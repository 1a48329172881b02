"""Projection of high-dimensional points to the plane, for the same points at several times (layers)."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray
from bertology.errors import Refusal
from bertology.numerics.kmeans import principal_axes
from bertology.numerics.procrustes import rotate_onto

ProjectionMethod = Literal["pca", "aligned-pca", "ica", "tsne", "umap"]

PERPLEXITY = 30.0


def project_to_plane(states: NDArray[Any], method: ProjectionMethod, *, seed: int) -> FloatArray:
    """(time, point, 2) from (time, point, dimension).

    `aligned-pca` projects each time to its own principal plane, rotated towards that of the time before; the other
    methods fit one plane to all times, so that positions are comparable.
    """
    if method == "aligned-pca":
        planes: list[FloatArray] = []
        for time in states:
            plane = _pad_to_plane(principal_axes(time, 2))
            planes.append(rotate_onto(plane, planes[-1]) if planes else plane)
        return np.stack(planes)
    times, points, dimensions = states.shape
    all_points = states.reshape(times * points, dimensions).astype(np.float64)
    return _pad_to_plane(_reduce(all_points, method, seed)).reshape(times, points, 2)


def _reduce(points: FloatArray, method: ProjectionMethod, seed: int) -> FloatArray:
    if method == "pca" or len(points) < 4:
        return principal_axes(points, 2)
    model: Any
    if method == "ica":
        from sklearn.decomposition import FastICA

        model = FastICA(2, random_state=seed, max_iter=1000, whiten="unit-variance")
    elif method == "tsne":
        from sklearn.manifold import TSNE

        model = TSNE(2, random_state=seed, perplexity=min(PERPLEXITY, (len(points) - 1) / 3), init="pca")
    else:
        try:
            from umap import UMAP  # pyright: ignore[reportMissingImports]  # large and rarely needed: no dependency
        except ImportError as error:
            raise Refusal(
                "The umap projection needs a package that is not installed (umap-learn)",
                "umap-learn, or another projection",
                "Install it with `pip install umap-learn`, or choose another projection",
            ) from error
        model = cast("Any", UMAP)(n_components=2, random_state=seed)
    return np.asarray(model.fit_transform(points), np.float64)


def _pad_to_plane(points: FloatArray) -> FloatArray:
    """Two columns; missing ones are 0."""
    return np.pad(points[:, :2], ((0, 0), (0, 2 - min(2, points.shape[1]))))
