"""Fit a linear map under which similar pairs of vectors have a higher cosine than dissimilar ones (reif2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray
from bertology.lazy import torch
from bertology.numerics.nearest_neighbours import unit_vectors

if TYPE_CHECKING:
    from torch import Tensor

IndexPairs = NDArray[np.intp]
"""(pair, 2) indices of vectors."""

LEARNING_RATE, MAX_STEPS, VALIDATION_INTERVAL, PATIENCE = 0.2, 60, 5, 3
"""The learning rate is for width 1; wider maps have smaller weights and a smaller rate."""


def random_projection(dimensions: int, width: int, *, seed: int) -> FloatArray:
    """(dimension, width) orthonormal rows in random directions."""
    directions = np.random.default_rng([seed, dimensions]).normal(size=(width, dimensions))
    return np.linalg.qr(directions)[0].T


def cosine_margin(vectors: NDArray[Any], similar: IndexPairs, dissimilar: IndexPairs) -> float:
    """Mean cosine of similar pairs minus that of dissimilar pairs, -2 to 2."""
    units = unit_vectors(vectors)
    means = [float((units[pairs[:, 0]] * units[pairs[:, 1]]).sum(1).mean()) for pairs in (similar, dissimilar)]
    return means[0] - means[1]


def fit_projection(
    vectors: NDArray[Any],
    train: tuple[IndexPairs, IndexPairs],
    validation: tuple[IndexPairs, IndexPairs],
    start: FloatArray,
) -> FloatArray:
    """(dimension, width) the map, trained by Adam from `start` to raise the cosine margin of the training pairs.

    `train` and `validation` are similar and dissimilar pairs. The map with the highest validation margin is returned,
    `start` included; without validation pairs, the last one. All vectors are first divided by one number, which changes
    no cosine, so that one learning rate suits every layer.
    """
    scaled = vectors.astype(np.float64)
    scaled = scaled / max(float(np.sqrt(np.square(scaled).sum(1).mean())), 1e-12)
    used, indices = np.unique(np.concatenate(train), return_inverse=True)
    states = torch.from_numpy(scaled[used].astype(np.float32))
    weights = _pair_weights(indices.reshape(-1, 2), len(train[0]), len(used))
    validated = all(len(pairs) for pairs in validation)
    best_margin = cosine_margin(scaled @ start.T, *validation) if validated else -np.inf
    best_projection, n_worse = start, 0
    with torch.enable_grad():
        projection = torch.from_numpy(start.astype(np.float32)).clone().requires_grad_()
        optimiser = torch.optim.Adam([projection], LEARNING_RATE / np.sqrt(states.shape[1]))
        for step in range(1, MAX_STEPS + 1):
            optimiser.zero_grad()
            mapped = states @ projection.T
            units = mapped / mapped.norm(dim=1, keepdim=True).clamp(min=1e-8)
            loss = -(units * torch.sparse.mm(weights, units)).sum()
            loss.backward()
            optimiser.step()
            if step % VALIDATION_INTERVAL:
                continue
            current = projection.detach().numpy().astype(np.float64)
            margin = cosine_margin(scaled @ current.T, *validation) if validated else step
            n_worse = 0 if margin > best_margin else n_worse + 1
            if not n_worse:
                best_margin, best_projection = margin, current.copy()
            if n_worse == PATIENCE:
                break
    return best_projection


def _pair_weights(pairs: IndexPairs, n_similar: int, size: int) -> Tensor:
    """(vector, vector) sparse weights of the cosine of each pair; the first `n_similar` pairs are similar."""
    n_dissimilar = len(pairs) - n_similar
    values = np.concatenate([np.full(n_similar, 1 / n_similar), np.full(n_dissimilar, -1 / n_dissimilar)]).astype(
        np.float32
    )
    indices = torch.from_numpy(pairs.T.astype(np.int64))
    # Without the explicit False, torch warns that invariants are not checked.
    matrix = torch.sparse_coo_tensor(indices, torch.from_numpy(values), (size, size), check_invariants=False)
    return matrix.coalesce()
