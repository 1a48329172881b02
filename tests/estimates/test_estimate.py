"""Operations on estimates keep values, intervals, sample sizes and the kind of interval together."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.estimates.estimate import Estimate, Estimates, describe_intervals
from bertology.estimates.resampling import bootstrap_mean, percentile_interval


def estimates_of(*values: float, interval: str = "bootstrap") -> Estimates:
    value = np.array(values)
    return Estimates(value=value, low=value - 1, high=value + 2, n=np.full(value.shape, 5), interval=interval)  # pyright: ignore[reportArgumentType]


def test_indexing_gives_one_estimate_or_a_smaller_array() -> None:
    estimates = estimates_of(1.0, 2.0, 3.0)
    assert estimates[1] == Estimate(2.0, 1.0, 4.0, 5)
    assert estimates[1:] == estimates_of(2.0, 3.0)


def test_a_format_holds_for_the_value_and_its_interval() -> None:
    estimate = Estimate(0.5474, -0.001, 0.66, 5)
    assert str(estimate) == f"{estimate}" == "0.547 [-0.001, 0.66]"
    assert f"{estimate:z.2f}" == "0.55 [0.00, 0.66]"
    assert f"{Estimate(0.5, float('nan'), float('nan'), 1):.2f}" == "0.50 (no interval)"


def test_exact_numbers_have_no_width() -> None:
    exact = Estimates.exact([0.5, 0.25], n=8)
    assert exact.interval == "exact" and exact.n.tolist() == [8, 8]
    assert exact.low.tolist() == exact.high.tolist() == [0.5, 0.25]


def test_missing_values_are_nan_with_a_sample_size_of_zero() -> None:
    empty = Estimates.empty((2, 3))
    assert empty.shape == (2, 3) and np.isnan(empty.value).all() and (empty.n == 0).all()


def test_stacking_adds_a_first_axis_and_concatenating_does_not() -> None:
    stacked = Estimates.stack([estimates_of(1.0, 2.0), estimates_of(3.0, 4.0)])
    assert stacked.shape == (2, 2) and stacked[1] == estimates_of(3.0, 4.0)
    assert Estimates.stack([Estimate(1.0, 0.0, 3.0, 5), Estimate(2.0, 1.0, 4.0, 5)]) == estimates_of(1.0, 2.0)
    assert Estimates.concatenate([estimates_of(1.0), estimates_of(2.0)]) == estimates_of(1.0, 2.0)


def test_joined_estimates_must_have_one_kind_of_interval() -> None:
    assert Estimates.stack([estimates_of(1.0), Estimates.empty(1)]).interval == "bootstrap"
    with pytest.raises(ValueError, match="different intervals"):
        Estimates.stack([estimates_of(1.0), estimates_of(1.0, interval="range")])


def test_a_decreasing_function_swaps_the_ends_of_the_interval() -> None:
    negated = estimates_of(1.0, interval="range").map(np.negative)
    assert negated[0] == Estimate(-1.0, -3.0, 0.0, 5, "range")


def test_broadcasting_and_other_sample_sizes() -> None:
    assert estimates_of(1.0).broadcast_to((2, 3)).shape == (2, 3)
    assert Estimates.full((2,), Estimate(1.0, 0.0, 3.0, 5)) == estimates_of(1.0, 1.0)
    assert estimates_of(1.0, 2.0).with_n(9).n.tolist() == [9, 9]


def test_intervals_are_described_with_names_only_if_they_differ() -> None:
    bootstrap, seeds, exact = estimates_of(1.0), estimates_of(1.0, interval="range"), Estimates.exact([1.0])
    assert describe_intervals({"a": bootstrap, "b": bootstrap}) == "95 % CI"
    assert describe_intervals({"a": seeds}) == "[min, max] over seeds"
    assert describe_intervals({"a": seeds, "b": bootstrap, "c": exact}) == "95 % CI; a: [min, max] over seeds"
    assert describe_intervals({"a": exact}) == "no interval"


def test_rounding_errors_decide_nothing() -> None:
    noise = 0.1 + 0.2 - 0.3
    assert not Estimate(0.3, noise, 0.6, 10).clearly_above(0.0)
    assert not Estimate(-0.3, -0.6, -noise, 10).clearly_below(0.0)
    assert not Estimate(0.35, 0.1 + 0.2, 0.4, 10).clearly_above(Estimate(0.2, 0.1, 0.3, 10))
    assert Estimate(0.3, 1e-6, 0.6, 10).clearly_above(0.0) and Estimate(-0.3, -0.6, -1e-6, 10).clearly_below(0.0)
    assert not Estimate(0.3, np.nan, np.nan, 1).clearly_above(0.0)


def test_resampled_values_follow_their_estimates() -> None:
    """Whatever is done to estimates, resampled values at the same place are those of the same number."""
    values = np.random.default_rng(0).normal(size=(30, 2, 3))
    estimates = bootstrap_mean(values, seed=0)

    def limits(part: Estimates) -> None:
        assert part.resampled is not None and part.resampled.shape == (1000, *part.shape)
        assert part.n_rows.shape == part.shape and (part.n_rows == 30).all()
        low, high = percentile_interval(part.resampled)
        np.testing.assert_allclose((part.low, part.high), (low, high), atol=1e-9)

    limits(estimates)
    limits(estimates[1])
    limits(estimates[:, None, 1:])
    limits(estimates[..., 2])
    limits(estimates.by_name(("a", "b", "c"))["b"])
    limits(estimates[:, 0][:, None].broadcast_to((2, 5)))
    limits(estimates[0].broadcast_to((4, 3)))
    limits(estimates[1, :1].broadcast_to((4,)))
    limits(Estimates.stack([estimates, estimates], axis=1))
    limits(Estimates.stack([estimates, estimates], axis=-1))
    limits(Estimates.concatenate([estimates, estimates[:1]]))
    limits(estimates.map(lambda number: -2 * number))
    limits(estimates.with_n(3))
    assert Estimates.stack([estimates, Estimates.empty((2, 3))]).resampled is None
    assert estimates.with_resampled(None).resampled is None
    joined = Estimates.stack([estimates[0, 0:1], bootstrap_mean(values[:20, 0, :1], seed=0)])
    assert joined.n_rows.tolist() == [[30], [20]] and Estimates.empty(2).n_rows.tolist() == [0, 0]
