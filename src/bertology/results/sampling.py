"""Estimates from per-sentence values: the bridge between resampling and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.resampling import bootstrap_mean, bootstrap_ratio
from bertology.results.estimate import Estimates


def mean_over_sentences(values: NDArray[Any], *, seed: int) -> Estimates:
    """The mean over sentences, each counting alike, with a bootstrap interval; NaN where a sentence has no value."""
    value, low, high, n = bootstrap_mean(values, seed=seed)
    return Estimates(value=value, low=low, high=high, n=n)


def pooled_over_sentences(counts: NDArray[Any], totals: NDArray[Any], *, seed: int) -> Estimates:
    """All counts over all totals, so that longer sentences weigh more, with a bootstrap interval over sentences."""
    value, low, high, n = bootstrap_ratio(counts, totals, seed=seed)
    return Estimates(value=value, low=low, high=high, n=n)


def joined(estimates: Sequence[Estimates]) -> Estimates:
    """Estimates made one at a time (by layer, say) as one array along a new first axis."""
    fields = {name: np.stack([getattr(e, name) for e in estimates]) for name in ("value", "low", "high", "n")}
    return Estimates(**fields)
