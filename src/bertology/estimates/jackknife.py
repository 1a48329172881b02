"""Delete-a-group jackknife intervals (tukey1958; efron1981), for statistics of pairs of observations.

A bootstrap resample holds some observations twice. Such a duplicate makes a pair with itself, whose similarity is
perfect in every representation, and biases every resample upwards. The jackknife makes no such pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Array, FloatArray
from bertology.estimates.resampling import LEVEL

GroupIndices = NDArray[np.intp]

MAX_CORRELATION = 1 - 1e-12


def assign_groups(units: Array, n_groups: int, *, seed: int) -> GroupIndices:
    """(observation,) group indices: whole units, such as sentences, assigned at random to groups of equal size."""
    names, unit = np.unique(units, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    return order[unit] % max(1, min(n_groups, len(names)))


def correlation_interval(values: NDArray[np.floating]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value and 95 % interval from (1 + group, ...) values: the first over all groups, the others without one group.

    For quantities between -1 and 1: the standard error is computed on Fisher's scale, where the variance does not
    depend on the value, so the interval stays within the range. It is NaN with fewer than two groups.
    """
    value = np.asarray(values[0], np.float64)
    n_groups = len(values) - 1
    if n_groups < 2:
        missing = np.full(value.shape, np.nan)
        return value, missing, missing
    transformed = np.arctanh(np.clip(values, -MAX_CORRELATION, MAX_CORRELATION))
    variance = np.square(transformed[1:] - transformed[1:].mean(0)).sum(0) * (n_groups - 1) / n_groups
    half_width = float(stdtrit(n_groups - 1, (1 + LEVEL) / 2)) * np.sqrt(variance)
    low, high = np.tanh(transformed[0] - half_width), np.tanh(transformed[0] + half_width)
    return value, np.minimum(low, value), np.maximum(high, value)
