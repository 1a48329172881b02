"""Intervals by leaving out one group of observations at a time (tukey1958; efron1981): knows nothing of BERT.

For statistics of pairs of observations. A bootstrap draws some observations twice; such a draw makes a pair with
itself, whose similarity is perfect in every representation, and pulls each resample up. Leaving out makes no pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]

LEVEL = 0.95
LARGEST = 1 - 1e-12


def dealt(units: NDArray[Any], groups: int, *, seed: int) -> Groups:
    """(observation,) the group of each: whole units, such as sentences, dealt at random, the groups alike in number."""
    names, unit = np.unique(units, return_inverse=True)
    places = np.random.default_rng(seed).permutation(len(names))
    return places[unit] % max(1, min(groups, len(names)))


def correlation_interval(values: NDArray[np.floating]) -> tuple[Floats, Floats, Floats]:
    """Value and 95 % interval from (1 + group, ...) values: first that of all, then that without each group.

    For quantities between -1 and 1: the standard error is taken on Fisher's scale, where one does not depend on the
    other, so the interval never leaves the range. With fewer than two groups there is none (NaN).
    """
    value = np.asarray(values[0], np.float64)
    groups = len(values) - 1
    if groups < 2:
        nothing = np.full(value.shape, np.nan)
        return value, nothing, nothing
    scaled = np.arctanh(np.clip(values, -LARGEST, LARGEST))
    spread = np.square(scaled[1:] - scaled[1:].mean(0)).sum(0) * (groups - 1) / groups
    reach = float(stdtrit(groups - 1, (1 + LEVEL) / 2)) * np.sqrt(spread)
    low, high = np.tanh(scaled[0] - reach), np.tanh(scaled[0] + reach)
    return value, np.minimum(low, value), np.maximum(high, value)
