"""Selection over many splits: noise is above its baseline as rarely as the level says, planted candidates are found."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.arrays import FloatArray
from bertology.estimates.cross_fitting import (
    N_SPLITS,
    CrossFit,
    cross_fit,
    cross_fitted_p,
    cross_fitted_ratio,
    held_out_ratio,
    random_halves,
    resampled_cross_fit,
)
from bertology.estimates.estimate import Estimate
from bertology.estimates.resampling import bootstrap_ratio


def texts(n: int) -> list[str]:
    return [f"text {number}" for number in range(n)]


def compare_with_baseline(
    correct: FloatArray, baseline: FloatArray, total: FloatArray, seed: int
) -> tuple[CrossFit, Estimate, float]:
    fit = cross_fit(random_halves(texts(len(total)), seed=seed), total, lambda half: half @ correct)
    assert fit is not None
    differences = fit.scores(correct) - baseline
    return fit, cross_fitted_ratio(differences, total, lowest=-1), cross_fitted_p(differences)


def sample_counts(seed: int, n: int, rates: list[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Correct answers of candidates and of a baseline with rate 0.3, by sentence; sentences differ in difficulty."""
    generator = np.random.default_rng(seed)
    total = generator.integers(1, 4, n)
    easiness = generator.beta(2, 2, (n, 1)) * 2
    correct = generator.binomial(total[:, None], np.minimum(1, easiness * rates))
    baseline = generator.binomial(total, np.minimum(1, easiness[:, 0] * 0.3))
    return correct.astype(float), baseline.astype(float), total.astype(float)


def test_halves_depend_only_on_texts_and_equal_texts_stay_together() -> None:
    names = [*texts(40), "text 3"]
    halves = random_halves(names, seed=0)
    assert halves.shape == (N_SPLITS, 41)
    assert (halves[:, :40].sum(1) == 20).all()
    np.testing.assert_array_equal(halves[:, 40], halves[:, 3])
    np.testing.assert_array_equal(random_halves(names[::-1], seed=0)[:, ::-1], halves)
    assert (random_halves(names, seed=1) != halves).any()


def test_scores_are_those_of_the_candidate_selected_on_the_other_half() -> None:
    """One split, by hand: candidate 1 is best on the first two units, candidate 0 on the last two."""
    correct = np.array([[0.0, 3.0], [1.0, 2.0], [2.0, 0.0], [3.0, 1.0]])
    halves = np.array([[True, True, False, False]])
    fit = cross_fit(halves, np.full(4, 3.0), lambda half: half @ correct)
    assert fit is not None
    assert fit.selected.tolist() == [[1, 0]]
    assert fit.scores(correct).tolist() == [[0, 1, 0, 1]]
    assert fit.most_selected == (0, 0.5)


def test_splits_without_measurements_in_both_halves_are_left_out() -> None:
    halves = np.array([[True, True, False], [True, False, False]])
    fit = cross_fit(halves, np.array([1, 1, 0]), lambda half: half @ np.ones((3, 1)))
    assert fit is not None and len(fit.halves) == 1
    assert cross_fit(halves, np.array([0, 0, 1]), lambda half: half @ np.ones((3, 1))) is None


@pytest.mark.parametrize(("n", "n_candidates"), [(12, 60), (40, 2), (40, 60), (120, 20)])
def test_candidates_as_good_as_the_baseline_are_rarely_above_it(n: int, n_candidates: int) -> None:
    """The hardest noise: every candidate has the baseline's rate. 2.5 % may lie above, 5 % may have p < 0.05."""
    results = [compare_with_baseline(*sample_counts(seed, n, [0.3] * n_candidates), seed)[1:] for seed in range(200)]
    above, significant = (
        np.mean([estimate.low > 0 for estimate, _ in results]),
        np.mean([p < 0.05 for _, p in results]),
    )
    assert above <= 0.025 + 2 * np.sqrt(0.025 * 0.975 / 200)
    assert significant <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean([estimate.low <= 0 <= estimate.high for estimate, _ in results]) >= 0.95 - 0.03
    assert abs(np.mean([estimate.value for estimate, _ in results])) < 0.02


def test_planted_candidates_are_found() -> None:
    found, chosen = [], []
    for seed in range(50):
        fit, estimate, p = compare_with_baseline(*sample_counts(seed, 80, [0.3] * 20 + [0.65]), seed)
        found.append(estimate.low > 0 and p < 0.05)
        chosen.append(fit.most_selected[0] == 20 and fit.most_selected[1] > 0.8)
    assert np.mean(found) > 0.9
    assert np.mean(chosen) > 0.95


def test_the_seed_of_the_splits_hardly_matters() -> None:
    """Other splits move the ends of the interval by far less than its width."""
    correct, baseline, total = sample_counts(0, 60, [0.3] * 20 + [0.5, 0.55])
    estimates = [compare_with_baseline(correct, baseline, total, seed)[1] for seed in range(8)]
    width = estimates[0].high - estimates[0].low
    for name in ("value", "low", "high"):
        assert np.ptp([getattr(estimate, name) for estimate in estimates]) < 0.2 * width, name


def test_few_units_have_no_interval_and_no_p_value() -> None:
    estimate = cross_fitted_ratio(np.ones((3, 4)), np.ones(4))
    assert estimate.value == 1 and np.isnan(estimate.low) and np.isnan(estimate.high)
    assert np.isnan(cross_fitted_p(np.ones((3, 4))))
    # Five of five are compatible with less than one half, and not significant.
    estimate = cross_fitted_ratio(np.ones((3, 5)), np.ones(5))
    assert estimate.low < 0.5 and estimate.high == 1
    assert cross_fitted_p(np.ones((3, 5))) == pytest.approx(np.e / 2**5)


def test_held_out_ratios_are_averaged_over_selections() -> None:
    """Every unit is held out equally often: the interval is that of all units, not of a half."""
    generator = np.random.default_rng(0)
    total = generator.integers(1, 4, 80).astype(float)
    correct = generator.binomial(total.astype(int), 0.6).astype(float)
    halves = random_halves(texts(80), seed=0)
    mean = held_out_ratio(np.concatenate([halves, ~halves]), correct, total)
    whole = cross_fitted_ratio(correct[None], total)
    assert mean.value == pytest.approx(whole.value, abs=0.002) and mean.n == 80
    assert mean.high - mean.low == pytest.approx(whole.high - whole.low, rel=0.02)
    one = held_out_ratio(halves[:1], correct, total)
    assert one.value == pytest.approx(correct[halves[0]].sum() / total[halves[0]].sum())
    assert one.n == 40 and one.high - one.low > 1.2 * (mean.high - mean.low)


def test_resampled_values_have_the_error_of_the_ratio() -> None:
    """With one candidate, nothing is selected: the resamples spread as the bootstrap of the plain ratio does."""
    generator = np.random.default_rng(5)
    correct, total = generator.binomial(2, 0.7, 200).astype(float), np.full(200, 2.0)
    resampled = resampled_cross_fit(np.tile(correct, (10, 1)), total, seed=0, resamples=400)
    expected = bootstrap_ratio(correct, total, seed=0)
    assert expected.resampled is not None
    np.testing.assert_allclose(resampled.mean(), correct.sum() / total.sum(), atol=0.005)
    np.testing.assert_allclose(resampled.std(), expected.resampled.std(), rtol=0.1)
    np.testing.assert_allclose(resampled, expected.resampled[:400], atol=1e-9)
