"""Estimates with intervals by resampling sentences, seeds or both (Efron 1979).

This is the one place that turns per-sentence values into intervals. Rows (sentences, examples) are resampled whole,
so that everything measured on one sentence stays together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Array, BoolArray, FloatArray, IntArray
from bertology.estimates.estimate import ROUNDING_ERROR, Estimates

RESAMPLES = 1000
LEVEL = 0.95
CHUNK_RESAMPLES = 100
RULE_OF_THREE = 3.0
"""An event not seen in n examples has a probability below 3/n, at the 95 % level."""


def bootstrap_mean(values: Array, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL) -> Estimates:
    """Mean over the first axis, with a percentile interval.

    NaN means "not measured": it counts neither in the mean nor in n. With fewer than two measurements the interval is
    NaN.
    """
    measured = np.isfinite(values)
    filled = np.where(measured, values, 0.0).astype(np.float64)
    return bootstrap_ratio(filled, measured.astype(np.float64), seed=seed, resamples=resamples, level=level)


def bootstrap_ratio(
    numerators: Array, denominators: Array, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimates:
    """Sum of numerators over sum of denominators along the first axis, with a percentile interval.

    This is the micro-average of rates such as correct arcs over arcs. n counts rows with a positive denominator.
    """
    rows = len(numerators)
    shape = numerators.shape[1:]
    top = numerators.reshape(rows, -1).astype(np.float64)
    bottom = np.broadcast_to(denominators, numerators.shape).reshape(rows, -1).astype(np.float64)
    resampled = np.concatenate(
        [_divide(counts @ top, counts @ bottom) for counts in _resample_chunks(rows, resamples, seed)]
    )
    value = _divide(top.sum(axis=0), bottom.sum(axis=0))
    return _percentile_estimates(value, resampled, (bottom > 0).sum(axis=0), rows, shape, level)


def bootstrap_proportion(
    correct: Array, total: Array, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimates:
    """`correct` over `total` along the first axis, with a percentile interval; exact where all rows agree."""
    estimates = bootstrap_ratio(correct, total, seed=seed, resamples=resamples, level=level)
    return exact_where_unanimous(estimates, level=level)


def exact_where_unanimous(estimates: Estimates, *, lowest: ArrayLike = 0.0, level: float = LEVEL) -> Estimates:
    """Proportions, with the interval of Clopper and Pearson (1934) where all cases are right, or all wrong.

    Such cases look the same however they are resampled. There are as many cases as n. With `lowest` -1 for differences
    of proportions, in which all cases may be 0. The interval holds for means of any values in this range: if their true
    mean is m away from that of the cases, at least a proportion m of all cases differs.
    """
    agree = (estimates.low == estimates.high) & np.isin(estimates.value, (-1, 0, 1))
    margins = unanimous_margin(estimates.n, level=level)
    low = np.where(agree, np.maximum(estimates.low - margins, lowest), estimates.low)
    high = np.where(agree, (estimates.high + margins).clip(max=1), estimates.high)
    return estimates.model_copy(update={"low": low, "high": high})


def unanimous_margin(n: ArrayLike, *, level: float = LEVEL) -> FloatArray:
    """The width of Clopper and Pearson's interval where all of n cases agree: 7 of 7 is at least 1 - 0.41."""
    return 1 - ((1 - level) / 2) ** (1 / np.maximum(np.asarray(n, np.float64), 1))


def bootstrap_group_mean(
    values: Array, groups: NDArray[np.integer], *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimates:
    """Mean over groups of rows (sentences of one length, say) of the mean in each group, with a percentile interval.

    Groups without a measurement, or of which no row is resampled, do not count. NaN as in `bootstrap_mean`.
    """
    shape = values.shape[1:]
    flat = values.reshape(len(values), -1).astype(np.float64)
    measured = np.isfinite(flat)
    filled = np.where(measured, flat, 0.0)
    rows_by_group = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    def group_means(counts: FloatArray) -> FloatArray:
        total = np.zeros((len(counts), flat.shape[1]))
        n_groups = np.zeros_like(total)
        for rows in rows_by_group:
            top, bottom = counts[:, rows] @ filled[rows], counts[:, rows] @ measured[rows].astype(np.float64)
            total += np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
            n_groups += bottom > 0
        return _divide(total, n_groups)

    resampled = np.concatenate([group_means(counts) for counts in _resample_chunks(len(flat), resamples, seed)])
    value = group_means(np.ones((1, len(flat))))[0]
    return _percentile_estimates(value, resampled, measured.sum(axis=0), len(flat), shape, level)


def bootstrap_sentences_and_seeds(
    sums: Array, statistic: Callable[[FloatArray], FloatArray], *, seed: int, max_undefined: float = 1.0
) -> Estimates:
    """A statistic of (seed, sentence, ...) counts summed over both, with an interval by resampling both.

    `statistic` takes sums with any number of leading axes. n is the number of sentences. There is no interval (NaN) if
    the statistic is undefined in a larger fraction of resamples than `max_undefined`.
    """
    total, resampled = resampled_sums(sums, seed=seed)
    value, resampled_values = statistic(total), statistic(resampled)
    low, high = percentile_interval(resampled_values)
    is_unbounded = np.isnan(resampled_values).mean(0) > max_undefined
    low, high = (np.where(is_unbounded, np.nan, limit) for limit in (np.fmin(low, value), np.fmax(high, value)))
    n = np.where(np.isfinite(value), sums.shape[1], 0)
    return Estimates(value=value, low=low, high=high, n=n).with_resampled(resampled_values, sums.shape[1])


def paired_difference(first: Estimates, second: Estimates, *, allow_constant: bool = False) -> Estimates | None:
    """The first minus the second, with the interval of their differences in the same resamples of the same rows.

    None if either was not resampled. There is no interval (NaN) where all resamples of either are the same, as of
    proportions on which all cases agree: such resamples do not say how far the proportion is known. With
    `allow_constant` the interval is that of the other one.
    """
    if first.resampled is None or second.resampled is None or first.resampled.shape != second.resampled.shape:
        return None
    value = first.value - second.value
    low, high = percentile_interval(first.resampled - second.resampled)
    is_constant = np.isclose(np.minimum(*(_spread(e.resampled) for e in (first, second))), 0.0, atol=ROUNDING_ERROR)
    is_unknown = (is_constant & (not allow_constant)) | np.isnan(first.low) | np.isnan(second.low)
    low, high = (np.where(is_unknown, np.nan, limit) for limit in (np.fmin(low, value), np.fmax(high, value)))
    return Estimates(value=value, low=low, high=high, n=np.minimum(first.n, second.n))


def _spread(resampled: FloatArray | None) -> FloatArray:
    """The range of the resampled values; 0 if none is a number."""
    assert resampled is not None
    measured = np.isfinite(resampled)
    highest = np.max(resampled, axis=0, where=measured, initial=-np.inf)
    lowest = np.min(resampled, axis=0, where=measured, initial=np.inf)
    return np.where(measured.any(0), highest - lowest, 0.0)


def range_over_seeds(values: Array) -> Estimates:
    """Mean over the first axis (seeds or random draws), from the lowest to the highest; n is their number."""
    n = np.full(values.shape[1:], len(values), np.int64)
    return Estimates(value=values.mean(0), low=values.min(0), high=values.max(0), n=n, interval="range")


def widen_by_rule_of_three(differences: Estimates, mask: BoolArray) -> Estimates:
    """Widen intervals of score differences by 3/n, to allow for events that were not seen in n examples.

    Applied only where `mask` is true: the difference of a model from itself is exactly 0.
    """
    margin = np.where(mask, RULE_OF_THREE / np.maximum(differences.n, 1), 0.0)
    low = np.fmin(differences.low, differences.value - margin).clip(-1)
    high = np.fmax(differences.high, differences.value + margin).clip(max=1)
    return differences.model_copy(update={"low": low, "high": high})


def percentile_interval(resampled: Array, *, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """The percentile interval over the first axis, ignoring NaN; NaN if nothing was measured.

    Limits that differ from 0 only by the rounding errors of sums are 0.
    """
    tail = 100 * (1 - level) / 2
    flat = resampled.reshape(len(resampled), -1)
    scale = np.max(np.abs(flat), axis=0, where=np.isfinite(flat), initial=0.0)
    low, high = (_percentile(flat, q) for q in (tail, 100 - tail))
    low, high = (np.where(np.abs(limit) <= ROUNDING_ERROR * scale, 0.0, limit) for limit in (low, high))
    return low.reshape(resampled.shape[1:]), high.reshape(resampled.shape[1:])


def ratio(correct: ArrayLike, total: ArrayLike, *, empty: float = 0.0) -> FloatArray:
    """`correct` over `total`, and `empty` where the total is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(correct, np.float64), np.asarray(total, np.float64))
    return np.divide(top, bottom, out=np.full(top.shape, empty), where=bottom > 0)


def resampled_ratios(
    numerators: NDArray[np.number], denominators: NDArray[np.number], *, seed: int, resamples: int = RESAMPLES
) -> FloatArray:
    """(resample, candidate) ratios of (row, candidate) sums to (row,) sums over resampled rows.

    The same seed resamples the same rows as `bootstrap_ratio`; a resample with denominator 0 is NaN.
    """
    used = np.flatnonzero(denominators > 0)
    counts = _resample_counts(len(denominators), resamples, seed)[:, used].astype(np.float32)
    # Sums of counts are integers far below 2 ** 24: single precision holds them exactly.
    top, bottom = counts @ numerators[used].astype(np.float32), counts @ denominators[used].astype(np.float32)
    return _divide(top.astype(np.float64), np.broadcast_to(bottom[:, None].astype(np.float64), top.shape))


def resampled_means(
    values: NDArray[np.floating], weights: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES
) -> FloatArray:
    """(resample, ...) weighted means over the first axis of resampled rows, for statistics of means.

    NaN counts neither in a mean nor in its weight.
    """
    rows = len(values)
    flat = values.reshape(rows, -1).astype(np.float64)
    measured = np.isfinite(flat) * weights.astype(np.float64)[:, None]
    top = np.where(measured > 0, flat, 0.0) * measured
    means = [_divide(counts @ top, counts @ measured) for counts in _resample_chunks(rows, resamples, seed)]
    return np.concatenate(means).reshape(resamples, *values.shape[1:])


def resampled_sums(
    values: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES
) -> tuple[FloatArray, FloatArray]:
    """Sums of (run, row, ...) over runs and rows, and (resample, ...) sums over resampled runs and rows.

    All runs measure the same rows: a resample draws rows once for all runs, then runs.
    """
    runs, rows = values.shape[:2]
    flat = values.reshape(runs, rows, -1).astype(np.float64)
    run_counts = _resampled_run_counts(runs, resamples, seed)
    sums: list[FloatArray] = []
    for chunk, counts in enumerate(_resample_chunks(rows, resamples, seed)):
        chunk_runs = run_counts[chunk * CHUNK_RESAMPLES :][: len(counts)]
        sums.append(sum((chunk_runs[:, run, None] * (counts @ flat[run]) for run in range(runs)), np.zeros(1)))
    shape = values.shape[2:]
    return flat.sum((0, 1)).reshape(shape), np.concatenate(sums).reshape(resamples, *shape)


def resampled_deviations(influences: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES) -> FloatArray:
    """(resample,) deviations of a number from its value, by the (row,) influences of the rows on it (delta method)."""
    rows = len(influences)
    chunks = [(counts - 1.0) @ influences for counts in _resample_chunks(rows, resamples, seed)]
    return np.concatenate(chunks)


def resampled_runs(values: NDArray[np.floating], *, seed: int) -> FloatArray:
    """(resample, ...) means over resampled runs of (run, resample, ...) values that were computed by run."""
    runs, resamples = values.shape[:2]
    weights = _resampled_run_counts(runs, resamples, seed) / runs
    return np.einsum("br,rb...->b...", weights, values)


def _resampled_run_counts(runs: int, resamples: int, seed: int) -> IntArray:
    """(resample, run) how often each run is drawn."""
    return np.random.default_rng([seed, runs]).multinomial(runs, np.full(runs, 1 / runs), size=resamples)


def _percentile_estimates(
    value: FloatArray, resampled: FloatArray, n: IntArray, n_rows: int, shape: tuple[int, ...], level: float
) -> Estimates:
    low, high = percentile_interval(resampled, level=level)
    low[n < 2] = high[n < 2] = np.nan
    estimates = Estimates(
        value=value.reshape(shape), low=low.reshape(shape), high=high.reshape(shape), n=n.reshape(shape)
    )
    return estimates.with_resampled(resampled.reshape(len(resampled), *shape), n_rows)


@lru_cache(maxsize=1)
def _resample_counts(rows: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """(resample, row) how often each row is drawn; cached, as many candidates share the same rows."""
    return np.concatenate([counts.astype(np.uint16) for counts in _resample_chunks(rows, resamples, seed)])


def _resample_chunks(rows: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """(resample, row) how often each row is drawn, for `CHUNK_RESAMPLES` resamples at a time."""
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, CHUNK_RESAMPLES):
        size = min(CHUNK_RESAMPLES, resamples - start)
        indices = generator.integers(rows, size=(size, rows)) + rows * np.arange(size)[:, None]
        yield np.bincount(indices.ravel(), minlength=size * rows).reshape(size, rows).astype(np.float64)


def _divide(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    return np.divide(numerators, denominators, out=np.full_like(numerators, np.nan), where=denominators > 0)


def _percentile(resampled: FloatArray, q: float) -> FloatArray:
    measured = np.isfinite(resampled)
    if measured.all():
        return np.percentile(resampled, q, axis=0)
    columns = (resampled[measured[:, i], i] for i in range(resampled.shape[1]))
    return np.array([np.percentile(column, q) if len(column) else np.nan for column in columns])
