"""Comparison with the best: planted winners are distinguished, copies never, and error rates are as stated."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.estimates.hypothesis_tests import argmax_rate, compare_with_best
from bertology.estimates.resampling import bootstrap_ratio, percentile_interval, resampled_ratios


def sample_counts(rates: list[float], units: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    total = generator.integers(1, 5, size=units)
    return generator.binomial(total[:, None], rates, size=(units, len(rates))), total


def test_a_clear_winner_is_distinguished_from_all_others() -> None:
    correct, total = sample_counts([0.2, 0.9, 0.3, 0.25], 100, 0)
    best = compare_with_best(correct, total, seed=0)
    assert best is not None
    assert best.index == 1
    assert best.rate == pytest.approx(correct[:, 1].sum() / total.sum())
    assert len(best.indistinguishable) == 0
    assert best.low < best.rate < best.high


def test_a_copy_of_the_winner_is_indistinguishable() -> None:
    correct, total = sample_counts([0.2, 0.9], 100, 0)
    best = compare_with_best(np.concatenate([correct, correct[:, 1:]], axis=1), total, seed=0)
    assert best is not None
    assert best.index == 1  # the first of the tied candidates
    assert best.indistinguishable.tolist() == [2]


def test_the_true_best_is_among_the_indistinguishable_candidates() -> None:
    """With many close candidates the truly best is rarely the observed best, but in 95 % not distinguished from it."""
    observed = covered = 0
    for seed in range(100):
        correct, total = sample_counts([0.55] + [0.5] * 40, 40, seed)
        best = compare_with_best(correct, total, seed=seed, resamples=200)
        assert best is not None
        observed += best.index == 0
        covered += best.index == 0 or 0 in best.indistinguishable
    assert observed < 60
    assert covered >= 90


def test_intervals_hold_for_all_candidates_at_once() -> None:
    """The best of forty equal candidates looks better than it is; its interval still covers the truth in 95 %."""
    covered = 0
    for seed in range(100):
        correct, total = sample_counts([0.5] * 40, 40, seed)
        best = compare_with_best(correct, total, seed=seed, resamples=200)
        assert best is not None
        assert best.rate > 0.5
        covered += best.low <= 0.5 <= best.high
    assert covered >= 90


def test_there_is_no_best_with_fewer_than_two_units() -> None:
    assert compare_with_best(np.array([[3, 1]]), np.array([4]), seed=0) is None
    assert compare_with_best(np.zeros((5, 2)), np.zeros(5), seed=0) is None
    assert argmax_rate(np.zeros((0, 2)), np.zeros(0)) is None


def test_resampled_ratios_are_those_of_the_bootstrap() -> None:
    correct, total = sample_counts([0.2, 0.6], 30, 3)
    total[4], correct[4] = 0, 0
    ratios = resampled_ratios(correct, total, seed=7)
    estimates = bootstrap_ratio(correct.astype(float), total[:, None].astype(float), seed=7)
    np.testing.assert_allclose(percentile_interval(ratios), [estimates.low, estimates.high])
