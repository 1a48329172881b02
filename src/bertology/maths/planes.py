"""Points of a space of many dimensions in the plane, the same points at several times side by side."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from bertology.maths.clusters import principal_axes
from bertology.maths.procrustes import rotated

Floats = NDArray[np.float64]
Method = Literal["pca", "aligned", "ica", "tsne", "umap"]

PERPLEXITY = 30.0


def in_the_plane(states: NDArray[Any], method: Method, *, seed: int) -> Floats:
    """(time, point, 2) from (time, point, dimension).

    `aligned` has the principal plane of each time, turned to lie nearest to the time before; all other methods make
    one plane of all times together, so that places can be compared.
    """
    if method == "aligned":
        planes: list[Floats] = []
        for time in states:
            plane = _wide(principal_axes(time, 2))
            planes.append(rotated(plane, planes[-1]) if planes else plane)
        return np.stack(planes)
    times, points, dimensions = states.shape
    together = states.reshape(times * points, dimensions).astype(np.float64)
    return _wide(_reduced(together, method, seed)).reshape(times, points, 2)


def _reduced(points: Floats, method: Method, seed: int) -> Floats:
    if method == "pca" or len(points) < 4:
        return principal_axes(points, 2)
    fitted: Any
    if method == "ica":
        from sklearn.decomposition import FastICA

        fitted = FastICA(2, random_state=seed, max_iter=1000, whiten="unit-variance")
    elif method == "tsne":
        from sklearn.manifold import TSNE

        fitted = TSNE(2, random_state=seed, perplexity=min(PERPLEXITY, (len(points) - 1) / 3), init="pca")
    else:
        fitted = _umap(seed)
    return np.asarray(fitted.fit_transform(points), np.float64)


def _umap(seed: int) -> Any:
    """The package is large and seldom wanted: it is no dependency."""
    try:
        from umap import UMAP  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ModuleNotFoundError(
            "umap-learn is not installed; install it, or choose another method", name="umap"
        ) from None
    return cast("Any", UMAP)(n_components=2, random_state=seed)


def _wide(points: Floats) -> Floats:
    """Two columns, where fewer dimensions vary the others being 0."""
    return np.pad(points[:, :2], ((0, 0), (0, 2 - min(2, points.shape[1]))))
