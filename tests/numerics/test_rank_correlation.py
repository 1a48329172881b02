"""Rank correlations equal those of SciPy, with ties and with masked positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from bertology.numerics.rank_correlation import spearman


def spearmanr(first: Any, second: Any) -> float:
    result: Any = stats.spearmanr(first, second)
    return float(result.statistic)


def test_correlations_equal_those_of_scipy_with_ties_and_masks() -> None:
    generator = np.random.default_rng(0)
    first, second = (generator.integers(0, 6, size=(40, 15)).astype(np.float32) for _ in range(2))
    mask = generator.random((40, 15)) < 0.7
    correlations = spearman(*(torch.from_numpy(a) for a in (first, second, mask)))
    for row in range(40):
        expected = spearmanr(first[row][mask[row]], second[row][mask[row]])
        np.testing.assert_allclose(float(correlations[row]), expected, atol=1e-6)


def test_same_and_opposite_order() -> None:
    rising = torch.arange(5.0)
    mask = torch.ones(5, dtype=torch.bool)
    assert float(spearman(rising, rising**3, mask)) == 1
    assert float(spearman(rising, -rising, mask)) == -1


def test_correlations_of_constant_values_are_undefined() -> None:
    rising = torch.arange(4.0)
    mask = torch.ones(4, dtype=torch.bool)
    assert spearman(rising, torch.ones(4), mask).isnan()
    assert spearman(rising, rising, torch.tensor([True, True, False, False])).isnan()


def test_nearly_equal_values_are_partly_tied() -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = torch.rand(2, 6, 9, generator=generator).unbind(0)
    mask = torch.rand(6, 9, generator=generator) > 0.2
    # Values much farther apart than the tolerance have ordinary ranks.
    torch.testing.assert_close(spearman(first, second, mask, tie_tolerance=1e-6), spearman(first, second, mask))
    unmasked = torch.ones(9, dtype=torch.bool)
    nearly_constant = torch.ones(9)
    nearly_constant[0] = 2.0
    jitter = 1e-7 * torch.randn(9, generator=generator)
    exact = spearman(nearly_constant, second[0], unmasked)
    torch.testing.assert_close(
        spearman(nearly_constant + jitter, second[0], unmasked, tie_tolerance=1e-3), exact, rtol=0, atol=1e-3
    )
    assert abs(float(spearman(nearly_constant + jitter, second[0], unmasked) - exact)) > 1e-3
    assert spearman(
        nearly_constant[1:] + jitter[1:], second[0, 1:], unmasked[1:], tie_tolerance=1e-3
    ).isnan()  # nearly all the same
    # Halfway between tied and apart: the ranks of two values have half their distance.
    pair = torch.tensor([1.0, 1.0005, 3.0])
    ranks = torch.tensor([-0.75, -0.25, 1.0])
    other = torch.tensor([1.0, 5.0, 2.0])
    tolerance = 0.001 / float(pair.mean())
    expected = np.corrcoef(ranks.numpy(), [0, 2, 1])[0, 1]
    assert float(spearman(pair, other, torch.ones(3, dtype=torch.bool), tie_tolerance=tolerance)) == pytest.approx(
        expected, abs=1e-3
    )
