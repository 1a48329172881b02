"""The jackknife over groups: known standard errors, how often its interval holds the truth, whole units."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.maths import kernel_sums
from bertology.maths.jackknife import Floats, Groups, correlation_interval, dealt
from bertology.maths.kernel_similarity import pearson


def test_units_stay_together_and_groups_are_alike() -> None:
    units = np.repeat(np.arange(60), 5)
    groups = dealt(units, 20, seed=0)
    assert all(len(set(groups[units == unit])) == 1 for unit in range(60))
    np.testing.assert_array_equal(np.bincount(groups), 15)
    assert set(dealt(np.array([4, 4, 9]), 20, seed=0)) == {0, 1}


def test_the_standard_error_of_a_mean_is_the_usual_one() -> None:
    values = np.random.default_rng(0).normal(scale=0.01, size=200)
    left_out = np.array([np.delete(values, place).mean() for place in range(200)])
    value, low, high = correlation_interval(np.array([values.mean(), *left_out]))
    assert (high - low) / 2 == pytest.approx(1.972 * values.std(ddof=1) / np.sqrt(200), rel=0.01)
    assert low < value < high


def test_one_group_has_no_interval_and_a_perfect_value_stays_in_range() -> None:
    value, low, high = correlation_interval(np.array([0.3, 0.2]))
    assert value == 0.3 and np.isnan(low) and np.isnan(high)
    value, low, high = correlation_interval(np.ones(6))
    assert low == pytest.approx(1) and high == value == 1


def drawn(sentences: int, seed: int) -> tuple[Floats, Floats, Groups]:
    """Five stimuli a sentence that share a topic, as two noisy models see them, and the sentence of each."""
    mixing = np.random.default_rng(0).normal(size=(2, 10, 8))
    generator = np.random.default_rng(seed)
    stimuli = generator.normal(size=(sentences, 1, 10)) + generator.normal(size=(sentences, 5, 10))
    states = stimuli.reshape(1, -1, 10) @ mixing
    states += np.array([1, 2])[:, None, None] * generator.normal(size=states.shape)
    return states[0], states[1], np.repeat(np.arange(sentences), 5)


def test_intervals_of_pairs_hold_the_truth_as_often_as_they_say() -> None:
    def similarity(sentences: int, groups: int, seed: int) -> Floats:
        first, second, units = drawn(sentences, seed)
        rows = kernel_sums.unit_rows(first), kernel_sums.unit_rows(second)
        return pearson(kernel_sums.of_features(*rows, dealt(units, groups, seed=0)))

    truth = similarity(20_000, 1, seed=1)[0]
    intervals = [correlation_interval(similarity(60, 20, seed=100 + number)) for number in range(150)]
    held = np.mean([low <= truth <= high for _, low, high in intervals])
    assert 0.89 <= held <= 0.99
