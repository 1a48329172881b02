"""Intervals by resampling sentences (Efron 1979): arrays in, estimates' parts out; knows nothing of BERT."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 1000
LEVEL = 0.95
RESAMPLES_AT_ONCE = 100


def bootstrap_mean(
    values: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """The mean over the first axis with its percentile interval and count: (mean, low, high, n).

    Rows are resampled whole, so everything measured on one sentence stays together. NaN means "not measured there":
    it counts neither in the mean nor in n. With fewer than two measurements there is no interval (NaN).
    """
    measured = np.isfinite(values)
    filled = np.where(measured, values, 0.0).astype(np.float64)
    return bootstrap_ratio(filled, measured.astype(np.float64), seed=seed, resamples=resamples, level=level)


def bootstrap_ratio(
    numerators: NDArray[np.floating],
    denominators: NDArray[np.floating],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Sum of numerators over sum of denominators along the first axis, interval by resampling rows together.

    For rates pooled over sentences (correct arcs over arcs). n is how many rows have a positive denominator.
    """
    rows = len(numerators)
    shape = numerators.shape[1:]
    top = numerators.reshape(rows, -1).astype(np.float64)
    bottom = np.broadcast_to(denominators, numerators.shape).reshape(rows, -1).astype(np.float64)
    counted = (bottom > 0).sum(axis=0)
    means: list[Floats] = []
    for weights in _resampled_weights(rows, resamples, seed):
        means.append(_divide(weights @ top, weights @ bottom))
    tail = 100 * (1 - level) / 2
    drawn = np.concatenate(means)
    low, high = (_percentile(drawn, q) for q in (tail, 100 - tail))
    unsure = counted < 2
    low[unsure] = high[unsure] = np.nan
    value = _divide(top.sum(axis=0), bottom.sum(axis=0))
    return value.reshape(shape), low.reshape(shape), high.reshape(shape), counted.reshape(shape)


def resampled_ratios(
    numerators: NDArray[np.number], denominators: NDArray[np.number], *, seed: int, resamples: int = RESAMPLES
) -> Floats:
    """(resample, candidate) sums of (row, candidate) counts over sums of (row,) counts, of resampled rows.

    The same seed draws the same rows as `bootstrap_ratio` does; a resample without a denominator is NaN.
    """
    used = np.flatnonzero(denominators > 0)
    times = _drawn(len(denominators), resamples, seed)[:, used].astype(np.float32)
    # Sums of counts are whole numbers far below 2 ** 24: single precision holds them exactly.
    top, bottom = times @ numerators[used].astype(np.float32), times @ denominators[used].astype(np.float32)
    return _divide(top.astype(np.float64), np.broadcast_to(bottom[:, None].astype(np.float64), top.shape))


@lru_cache(maxsize=1)
def _drawn(rows: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """(resample, row) how often each row is drawn: the same for everything that is measured on the same rows."""
    return np.concatenate([weights.astype(np.uint16) for weights in _resampled_weights(rows, resamples, seed)])


def _resampled_weights(rows: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each row is drawn, for a few resamples at a time."""
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, RESAMPLES_AT_ONCE):
        some = min(RESAMPLES_AT_ONCE, resamples - start)
        drawn = generator.integers(rows, size=(some, rows)) + rows * np.arange(some)[:, None]
        yield np.bincount(drawn.ravel(), minlength=some * rows).reshape(some, rows).astype(np.float64)


def _divide(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def _percentile(drawn: Floats, q: float) -> Floats:
    """Percentiles that ignore resamples in which nothing was measured."""
    measured = np.isfinite(drawn)
    if measured.all():
        return np.percentile(drawn, q, axis=0)
    columns = (drawn[measured[:, i], i] for i in range(drawn.shape[1]))
    return np.array([np.percentile(column, q) if len(column) else np.nan for column in columns])


def resampled_means(
    values: NDArray[np.floating], weights: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES
) -> Floats:
    """(resample, ...) weighted means over the first axis of resampled rows, for statistics that are no mean themselves.

    NaN counts neither in a mean nor in its weight.
    """
    rows = len(values)
    flat = values.reshape(rows, -1).astype(np.float64)
    measured = np.isfinite(flat) * weights.astype(np.float64)[:, None]
    top = np.where(measured > 0, flat, 0.0) * measured
    means = [_divide(drawn @ top, drawn @ measured) for drawn in _resampled_weights(rows, resamples, seed)]
    return np.concatenate(means).reshape(resamples, *values.shape[1:])


def bootstrap_group_mean(
    values: NDArray[np.floating],
    groups: NDArray[np.integer],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """The mean over groups of the mean over each group's rows, interval by resampling rows: (mean, low, high, n).

    A group in which nothing was measured, or of which no row is drawn, is left out. NaN as in `bootstrap_mean`.
    """
    shape = values.shape[1:]
    flat = values.reshape(len(values), -1).astype(np.float64)
    measured = np.isfinite(flat)
    filled = np.where(measured, flat, 0.0)
    own = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    def means(weights: Floats) -> Floats:
        total = np.zeros((len(weights), flat.shape[1]))
        there = np.zeros_like(total)
        for rows in own:
            top, bottom = weights[:, rows] @ filled[rows], weights[:, rows] @ measured[rows].astype(np.float64)
            total += np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
            there += bottom > 0
        return _divide(total, there)

    counted = measured.sum(axis=0)
    drawn = np.concatenate([means(weights) for weights in _resampled_weights(len(flat), resamples, seed)])
    tail = 100 * (1 - level) / 2
    low, high = (_percentile(drawn, q) for q in (tail, 100 - tail))
    unsure = counted < 2
    low[unsure] = high[unsure] = np.nan
    value = means(np.ones((1, len(flat))))[0]
    return value.reshape(shape), low.reshape(shape), high.reshape(shape), counted.reshape(shape)


def resampled_sums(
    values: NDArray[np.floating], *, seed: int, resamples: int = RESAMPLES
) -> tuple[Floats, NDArray[np.float64]]:
    """The sums of (run, row, ...) over runs and rows, and (resample, ...) sums of resampled runs and resampled rows.

    Every run has measured the same rows: a resample draws rows once for all runs, then runs.
    """
    runs, rows = values.shape[:2]
    flat = values.reshape(runs, rows, -1).astype(np.float64)
    chosen = np.random.default_rng([seed, runs]).multinomial(runs, np.full(runs, 1 / runs), size=resamples)
    drawn: list[Floats] = []
    for number, weights in enumerate(_resampled_weights(rows, resamples, seed)):
        own = chosen[number * RESAMPLES_AT_ONCE :][: len(weights)]
        drawn.append(sum((own[:, run, None] * (weights @ flat[run]) for run in range(runs)), np.zeros(1)))
    shape = values.shape[2:]
    return flat.sum((0, 1)).reshape(shape), np.concatenate(drawn).reshape(resamples, *shape)
