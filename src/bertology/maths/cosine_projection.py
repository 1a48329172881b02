"""A linear map under which some pairs of vectors have a higher cosine than others (reif2019): knows nothing of BERT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.neighbours import units

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Pairs = NDArray[np.intp]
"""(pair, 2) places of vectors."""

RATE, STEPS, EVERY, PATIENCE = 0.2, 60, 5, 3
"""The rate is that of a map of width 1; the weights of a wider one are smaller, and so is its rate."""


def random_projection(dimensions: int, width: int, *, seed: int) -> Floats:
    """(dimension, width) orthonormal rows in random directions."""
    drawn = np.random.default_rng([seed, dimensions]).normal(size=(width, dimensions))
    return np.linalg.qr(drawn)[0].T


def separation(vectors: NDArray[Any], alike: Pairs, apart: Pairs) -> float:
    """Mean cosine of the pairs that should be alike less that of those that should not: -2 to 2, 0 no difference."""
    along = units(vectors)
    means = [float((along[pairs[:, 0]] * along[pairs[:, 1]]).sum(1).mean()) for pairs in (alike, apart)]
    return means[0] - means[1]


def fitted_projection(
    vectors: NDArray[Any], training: tuple[Pairs, Pairs], held: tuple[Pairs, Pairs], start: Floats
) -> Floats:
    """(dimension, width) the map that Adam makes of `start` to raise the separation of the training's pairs.

    Both have pairs that should be alike and pairs that should not. The map is the one with the highest separation of
    the held-out pairs, `start` included; where there are none of them, the last. Vectors are scaled by one number
    first, which changes no cosine, so that one rate does for every layer.
    """
    import torch

    scaled = vectors.astype(np.float64)
    scaled = scaled / max(float(np.sqrt(np.square(scaled).sum(1).mean())), 1e-12)
    used, places = np.unique(np.concatenate(training), return_inverse=True)
    states = torch.from_numpy(scaled[used].astype(np.float32))
    weights = _weights(places.reshape(-1, 2), len(training[0]), len(used))
    judged = all(len(pairs) for pairs in held)
    best, kept, since = separation(scaled @ start.T, *held) if judged else -np.inf, start, 0
    with torch.enable_grad():
        projection = torch.from_numpy(start.astype(np.float32)).clone().requires_grad_()
        optimiser = torch.optim.Adam([projection], RATE / np.sqrt(states.shape[1]))
        for step in range(1, STEPS + 1):
            optimiser.zero_grad()
            mapped = states @ projection.T
            along = mapped / mapped.norm(dim=1, keepdim=True).clamp(min=1e-8)
            loss = -(along * torch.sparse.mm(weights, along)).sum()
            loss.backward()
            optimiser.step()
            if step % EVERY:
                continue
            found = projection.detach().numpy().astype(np.float64)
            value = separation(scaled @ found.T, *held) if judged else step
            best, kept, since = (value, found.copy(), 0) if value > best else (best, kept, since + 1)
            if since == PATIENCE:
                break
    return kept


def _weights(pairs: Pairs, alike: int, size: int) -> Tensor:
    """(vector, vector), sparse: what the cosine of each pair counts; the first `alike` pairs are to be alike."""
    import torch

    apart = len(pairs) - alike
    values = np.concatenate([np.full(alike, 1 / alike), np.full(apart, -1 / apart)]).astype(np.float32)
    places = torch.from_numpy(pairs.T.astype(np.int64))
    # Saying that nothing is checked keeps torch from warning that nothing is.
    made = torch.sparse_coo_tensor(places, torch.from_numpy(values), (size, size), check_invariants=False)
    return made.coalesce()
