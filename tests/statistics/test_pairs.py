"""Sums over pairs of tokens equal a loop over the pairs, for one set of pairs and for several joined ones."""

from __future__ import annotations

import pytest
import torch
from tests.statistics.token_batches import INPUTS, random_attention

from bertology.encoder.attention_hook import LayerActivations
from bertology.statistics.pairs import TokenPairs, pair_sums

ATTENTION = random_attention(INPUTS)
LENGTH = ATTENTION.shape[-1]
LISTED = [(0, 1, 2, 0), (0, 3, 0, 0), (0, 1, 2, 1), (1, 7, 5, 1), (2, 0, 1, 0)]
"""Batch row, source, target and sum; one pair is in two sums."""


def make_pairs(seed: int, n_weighted: int) -> TokenPairs:
    """Two listed sums and so many weighted ones, with random scales."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(3, n_weighted, LENGTH, LENGTH, generator=generator) if n_weighted else None
    scale = torch.rand(3, 2 + n_weighted, generator=generator) + 0.5
    return TokenPairs(torch.tensor(LISTED[seed:]).T, scale, LENGTH, weights)


def sums_by_loop(pairs: TokenPairs) -> torch.Tensor:
    """(batch, head, sum) without the scale."""
    sums = torch.zeros(3, 2, pairs.scale.shape[1])
    for row, source, target, index in pairs.indices.T.tolist():
        sums[row, :, index] += ATTENTION[row, :, source, target]
    if pairs.weights is not None:
        sums[..., 2:] = torch.einsum("bhft,bsft->bhs", ATTENTION, pairs.weights)
    return sums


@pytest.mark.parametrize("n_weighted", [0, 3])
def test_sums_equal_a_loop_over_pairs(n_weighted: int) -> None:
    pairs = make_pairs(0, n_weighted)
    sums = pair_sums(LayerActivations(0, ATTENTION), pairs)
    torch.testing.assert_close(sums, sums_by_loop(pairs) * pairs.scale[:, None])


@pytest.mark.parametrize("n_weighted", [(0, 0, 0), (0, 2, 0), (1, 0, 2), (1, 3, 2)])
def test_joined_sets_have_the_listed_sums_of_all_and_then_the_weighted_ones(n_weighted: tuple[int, ...]) -> None:
    sets = [make_pairs(seed, count) for seed, count in enumerate(n_weighted)]
    joined = sets[0].concatenate(sets[1:])
    separate = [sums_by_loop(pairs) for pairs in sets]
    expected = torch.cat([*(sums[..., :2] for sums in separate), *(sums[..., 2:] for sums in separate)], -1)
    torch.testing.assert_close(pair_sums(LayerActivations(0, ATTENTION), joined), expected)
    assert sets[0].concatenate(sets[1:]) is joined
