"""Rank correlations equal SciPy's, ties and left-out places included."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import stats

from bertology.maths.rank_correlation import spearman


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
