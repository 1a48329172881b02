"""The numbers of a verdict by which models are compared: effect, peak layer, and heads that pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.stats import norm

from bertology.arrays import FloatArray
from bertology.atlas.judged_model import CurvePeak, Effect, HeadCount, encode_resamples
from bertology.claims import claim as tests
from bertology.claims.claim_results import ClaimResult
from bertology.claims.result_numbers import cell_indices
from bertology.claims.strip import UNTRAINED_MODEL, main_comparison
from bertology.claims.verdict import Comparison, Measurement
from bertology.estimates.estimate import ROUNDING_ERROR, Estimate, Estimates
from bertology.results.measured_shape import MODEL_SERIES, Resamples
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, LayerCurve, UnmeasuredShape

Z = float(norm.isf(0.025))
MAX_DEVIATION = 5.0
"""Resamples are those of a number if their mean is nearer to it than so many of their standard deviations."""


def measure_effect(result: ClaimResult) -> Effect | None:
    """The effect of the comparison that is drawn for a finding; None if nothing was measured."""
    comparison = main_comparison(result.claim, result.verdict.comparisons)
    if comparison is None or not math.isfinite(comparison.value.estimate.value):
        return None
    results = dict(zip(result.claim.all_runs, result.results, strict=True))
    resampled = _resampled_effect(result, comparison, results)
    value = _effect_value(comparison)
    if not math.isfinite(value):
        return None
    n = comparison.value.estimate.n
    if resampled is None or not np.isfinite(resampled.values).all():
        return Effect(value=value, standard_error=_interval_error(comparison), n=n)
    error = float(resampled.values.std(ddof=1))
    if abs(float(resampled.values.mean()) - value) > MAX_DEVIATION * error + ROUNDING_ERROR:
        return Effect(value=value, standard_error=_interval_error(comparison), n=n)
    encoded = encode_resamples(np.asarray(resampled.values, np.float64))
    return Effect(value=value, standard_error=error, n=n, n_rows=int(resampled.n_rows), resampled=encoded)


def _effect_value(comparison: Comparison) -> float:
    """The effect; of a range, how far the number is inside of its nearer end."""
    if comparison.upper is None:
        return comparison.effect.value
    value, lower = comparison.value.estimate.value, _constant(comparison.lower)
    return min(value - lower, comparison.upper - value)


def _resampled_effect(result: ClaimResult, comparison: Comparison, results: Mapping[str, Result]) -> Resamples | None:
    test = result.claim.test
    if comparison.difference is not None and isinstance(test, tests.AnyRow) and test.difference is not None:
        return resampled_number(replace(comparison.value, measure=test.difference), results)
    number = resampled_number(comparison.value, results)
    lower = comparison.lower
    if number is None:
        return None
    value, n_rows = number
    if isinstance(lower, Measurement) and lower.estimate.interval != "exact":
        baseline = resampled_number(lower, results)
        if baseline is None:
            return None
        other = baseline.values
    else:
        other = np.full_like(value, _constant(lower))
    if comparison.upper is not None:
        return Resamples(np.minimum(value - other, comparison.upper - value), n_rows)
    return Resamples(other - value if comparison.is_below else value - other, n_rows)


def resampled_number(number: Measurement, results: Mapping[str, Result]) -> Resamples | None:
    """(resample,) values of a number of a result; None if they were not kept.

    The number of rows is 0 if the number is a mean of others that differ in it.
    """
    data = results[number.run].data
    if isinstance(data, UnmeasuredShape):
        return None
    cells, series = cell_indices(number, data), number.baseline or MODEL_SERIES
    names = [number.measure] if number.measure in data.measures else number.measure.split(" + ")
    kept = [resamples for name in names if (resamples := data.kept_resamples.get((series, name))) is not None]
    if cells is None or len(kept) < len(names):
        return None
    index = (slice(None), *(cells if isinstance(cells, tuple) else (cells,)))
    selected = np.sum([np.asarray(resamples.values, np.float64)[index] for resamples in kept], axis=0)
    flat = selected.reshape(len(selected), -1)
    is_measured = np.isfinite(flat)
    counts = is_measured.sum(1)
    means = np.where(counts > 0, np.where(is_measured, flat, 0.0).sum(1) / np.maximum(counts, 1), np.nan)
    n_rows = np.unique([each.n_rows[cells] for each in kept])
    return Resamples(means, np.array(n_rows[0] if len(n_rows) == 1 else 0))


def _constant(number: Measurement | float) -> float:
    return number.estimate.value if isinstance(number, Measurement) else number


def _interval_error(comparison: Comparison) -> float | None:
    """The standard error from the intervals, as if both numbers were independent; None without sampling error."""
    if comparison.difference is not None:
        return _estimate_error(comparison.difference, 1)
    sides = [side for side in (comparison.value, comparison.lower) if isinstance(side, Measurement)]
    errors = [_estimate_error(side.estimate, side.n_candidates) for side in sides]
    known = [error for error in errors if error is not None]
    return math.hypot(*known) if known else None


def _estimate_error(estimate: Estimate, n_candidates: int) -> float | None:
    """Half the width of a 95 % interval over 1.96, without the correction for several candidates."""
    if estimate.interval in ("exact", "range") or not math.isfinite(estimate.high - estimate.low):
        return None
    return (estimate.high - estimate.low) / 2 / float(norm.isf(0.025 / n_candidates))


def measure_peak(result: ClaimResult) -> CurvePeak | None:
    """The peak of the layer curve that a finding tests; None if it tests none, or several."""
    results = dict(zip(result.claim.all_runs, result.results, strict=False))
    measures = sorted(tests.tested_measures(result.claim.test))
    curves = [
        (name, curve.data)
        for curve in results.values()
        if isinstance(curve.data, LayerCurve)
        for name in measures
        if name in curve.data.measures
    ]
    if len(curves) != 1:
        return None
    [(measure, curve)] = curves
    is_lowest = bool(getattr(result.claim.test, "lowest", False))
    return _peak(measure, curve, is_lowest=is_lowest)


def _peak(measure: str, curve: LayerCurve, *, is_lowest: bool) -> CurvePeak | None:
    sign = -1.0 if is_lowest else 1.0
    estimates = curve.measures[measure]
    if not np.isfinite(estimates.value).all() or len(estimates.value) < 2:
        return None
    best = int((sign * estimates.value).argmax())
    resamples = curve.kept_resamples.get((MODEL_SERIES, measure))
    if resamples is not None and np.isfinite(resamples.values).all():
        low, high = np.percentile((sign * resamples.values).argmax(1), (2.5, 97.5))
        low, high = min(math.floor(low), best), max(math.ceil(high), best)
    else:
        low, high = _possible_peaks(estimates, best, is_lowest=is_lowest)
    first = curve.first_layer
    n_layers = len(estimates.value) - 1 + first
    return CurvePeak(
        measure=measure, layer=best + first, low=low + first, high=high + first, n_layers=n_layers, is_lowest=is_lowest
    )


def _possible_peaks(estimates: Estimates, best: int, *, is_lowest: bool) -> tuple[int, int]:
    """The first and last layer whose interval overlaps that of the best."""
    below = estimates.high[best] < estimates.low if is_lowest else estimates.low[best] > estimates.high
    possible = np.flatnonzero(~below)
    return int(min(possible.min(), best)), int(max(possible.max(), best))


def count_heads(result: ClaimResult) -> HeadCount | None:
    """The heads that pass a test of any head, by their corrected intervals; None for other tests."""
    test = result.claim.test
    if not isinstance(test, tests.AnyHead) or not result.results:
        return None
    results = dict(zip(result.claim.all_runs, result.results, strict=True))
    data = results[test.run].data
    if not isinstance(data, HeadGrid) or test.measure not in data.measures:
        return None
    estimates = data.measures[test.measure]
    factor = float(norm.isf(0.025 / estimates.value.size)) / Z
    floor = np.full(estimates.shape, test.threshold)
    for name in test.baselines:
        if test.measure in data.baselines.get(name, {}):
            floor = np.fmax(floor, data.baselines[name][test.measure].high)
    passing = estimates.value - factor * (estimates.value - estimates.low) > floor
    untrained = data.baselines.get(UNTRAINED_MODEL, {}).get(test.measure)
    return HeadCount(
        n_passing=int(passing.sum()),
        n_heads=int(np.isfinite(estimates.value).sum()),
        best=float(np.nanmax(estimates.value)),
        random_best=None if untrained is None else expected_best(untrained.value, estimates.value.size),
    )


def expected_best(values: FloatArray, n: int) -> float:
    """The expected highest of `n` values drawn from these with replacement."""
    ordered = np.sort(values[np.isfinite(values)])
    ranks = np.arange(1, len(ordered) + 1) / len(ordered)
    return float(ordered @ np.diff(ranks**n, prepend=0.0))
