"""The group jackknife: known standard errors, coverage of its interval, units kept in one group."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.geometry.representation_similarity.kernel_similarity import (
    feature_kernel_sums,
    pearson,
    unit_rows,
)
from bertology.arrays import FloatArray
from bertology.estimates.jackknife import GroupIndices, assign_groups, correlation_interval


def test_units_stay_in_one_group_and_groups_have_equal_size() -> None:
    units = np.repeat(np.arange(60), 5)
    groups = assign_groups(units, 20, seed=0)
    assert all(len(set(groups[units == unit])) == 1 for unit in range(60))
    np.testing.assert_array_equal(np.bincount(groups), 15)
    assert set(assign_groups(np.array([4, 4, 9]), 20, seed=0)) == {0, 1}


def test_the_standard_error_of_a_mean_is_the_usual_one() -> None:
    values = np.random.default_rng(0).normal(scale=0.01, size=200)
    left_out = np.array([np.delete(values, index).mean() for index in range(200)])
    value, low, high = correlation_interval(np.array([values.mean(), *left_out]))
    assert (high - low) / 2 == pytest.approx(1.972 * values.std(ddof=1) / np.sqrt(200), rel=0.01)
    assert low < value < high


def test_one_group_has_no_interval_and_a_perfect_value_stays_in_range() -> None:
    value, low, high = correlation_interval(np.array([0.3, 0.2]))
    assert value == 0.3 and np.isnan(low) and np.isnan(high)
    value, low, high = correlation_interval(np.ones(6))
    assert low == pytest.approx(1) and high == value == 1


def sample_stimuli(n_sentences: int, seed: int) -> tuple[FloatArray, FloatArray, GroupIndices]:
    """Five stimuli per sentence with a shared topic, as two noisy models represent them, and their sentences."""
    mixing = np.random.default_rng(0).normal(size=(2, 10, 8))
    generator = np.random.default_rng(seed)
    stimuli = generator.normal(size=(n_sentences, 1, 10)) + generator.normal(size=(n_sentences, 5, 10))
    states = stimuli.reshape(1, -1, 10) @ mixing
    states += np.array([1, 2])[:, None, None] * generator.normal(size=states.shape)
    return states[0], states[1], np.repeat(np.arange(n_sentences), 5)


def test_intervals_of_statistics_of_pairs_cover_the_truth() -> None:
    def similarity(n_sentences: int, n_groups: int, seed: int) -> FloatArray:
        first, second, units = sample_stimuli(n_sentences, seed)
        groups = assign_groups(units, n_groups, seed=0)
        return pearson(feature_kernel_sums(unit_rows(first), unit_rows(second), groups))

    truth = similarity(20_000, 1, seed=1)[0]
    intervals = [correlation_interval(similarity(60, 20, seed=100 + number)) for number in range(150)]
    coverage = np.mean([low <= truth <= high for _, low, high in intervals])
    assert 0.89 <= coverage <= 0.99
