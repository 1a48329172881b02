"""Weights lose what no weighted sum shows, and nothing else."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import null_space

from bertology.maths.null_space import effective


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def test_the_weighted_sums_stay_and_the_null_space_goes() -> None:
    weights, vectors = _random(2, 3, 9, 9), _random(2, 3, 9, 4, seed=1)
    found, rank = effective(weights, vectors)
    assert (rank == 4).all()
    torch.testing.assert_close(found @ vectors, weights @ vectors)
    for place in np.ndindex(2, 3):
        lost = null_space(vectors[place].numpy().T)
        expected = weights[place].numpy() @ (np.eye(9) - lost @ lost.T)
        np.testing.assert_allclose(found[place].numpy(), expected, atol=1e-10)


def test_nothing_goes_where_vectors_are_independent() -> None:
    weights, vectors = _random(5, 5), _random(5, 8, seed=1)
    torch.testing.assert_close(effective(weights, vectors)[0], weights)


def test_rank_counts_independent_vectors_and_zeros_none() -> None:
    vectors = _random(8, 2) @ _random(2, 6, seed=1)
    assert int(effective(_random(1, 8), vectors.float())[1]) == 2
    found, rank = effective(_random(1, 8), torch.zeros(8, 6))
    assert int(rank) == 0 and float(found.abs().max()) == 0
