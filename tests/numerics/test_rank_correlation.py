"""Rank correlations equal SciPy's, ties and left-out places included."""

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


def test_it_equals_scipy_with_ties_and_gaps() -> None:
    generator = np.random.default_rng(0)
    first, second = (generator.integers(0, 6, size=(40, 15)).astype(np.float32) for _ in range(2))
    counted = generator.random((40, 15)) < 0.7
    found = spearman(*(torch.from_numpy(a) for a in (first, second, counted)))
    for row in range(40):
        expected = spearmanr(first[row][counted[row]], second[row][counted[row]])
        np.testing.assert_allclose(float(found[row]), expected, atol=1e-6)


def test_same_and_opposite_order() -> None:
    rising = torch.arange(5.0)
    every = torch.ones(5, dtype=torch.bool)
    assert float(spearman(rising, rising**3, every)) == 1
    assert float(spearman(rising, -rising, every)) == -1


def test_it_is_undefined_where_there_is_no_order() -> None:
    rising = torch.arange(4.0)
    every = torch.ones(4, dtype=torch.bool)
    assert spearman(rising, torch.ones(4), every).isnan()
    assert spearman(rising, rising, torch.tensor([True, True, False, False])).isnan()


def test_values_that_are_all_but_equal_are_tied_in_part() -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = torch.rand(2, 6, 9, generator=generator).unbind(0)
    counted = torch.rand(6, 9, generator=generator) > 0.2
    # Far apart in units of `near`, nothing changes.
    torch.testing.assert_close(spearman(first, second, counted, tie_tolerance=1e-6), spearman(first, second, counted))
    everyone = torch.ones(9, dtype=torch.bool)
    level = torch.ones(9)
    level[0] = 2.0
    jitter = 1e-7 * torch.randn(9, generator=generator)
    exact = spearman(level, second[0], everyone)
    torch.testing.assert_close(
        spearman(level + jitter, second[0], everyone, tie_tolerance=1e-3), exact, rtol=0, atol=1e-3
    )
    assert abs(float(spearman(level + jitter, second[0], everyone) - exact)) > 1e-3
    assert spearman(
        level[1:] + jitter[1:], second[0, 1:], everyone[1:], tie_tolerance=1e-3
    ).isnan()  # nearly all the same
    # Halfway between tied and apart: the ranks of two values have half their distance.
    pair = torch.tensor([1.0, 1.0005, 3.0])
    ranks = torch.tensor([-0.75, -0.25, 1.0])
    other = torch.tensor([1.0, 5.0, 2.0])
    near = 0.001 / float(pair.mean())
    expected = np.corrcoef(ranks.numpy(), [0, 2, 1])[0, 1]
    assert float(spearman(pair, other, torch.ones(3, dtype=torch.bool), tie_tolerance=near)) == pytest.approx(
        expected, abs=1e-3
    )
