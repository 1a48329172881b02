"""The threshold of word_in_context equals that of an exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.senses.word_in_context.analysis import best_threshold


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better(seed: int) -> None:
    generator = np.random.default_rng(seed)
    positive = generator.random(31) < 0.4
    values = np.round(generator.normal(size=31) + positive, 1)
    accuracy = ((values > best_threshold(values, positive)) == positive).mean()
    thresholds = [-np.inf, *(values + 1e-6)]
    assert accuracy == max(((values > threshold) == positive).mean() for threshold in thresholds)


def test_threshold_is_halfway_between_the_classes() -> None:
    values, positive = np.array([0.1, 0.2, 0.6, 0.8]), np.array([False, False, True, True])
    assert best_threshold(values, positive) == pytest.approx(0.4)


def test_threshold_with_a_single_class() -> None:
    values = np.array([0.1, 0.2])
    assert best_threshold(values, np.array([True, True])) < 0.1
    assert best_threshold(values, np.array([False, False])) > 0.2
    assert np.isnan(best_threshold(values[:0], np.zeros(0, np.bool_)))
