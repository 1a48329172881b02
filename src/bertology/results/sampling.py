"""Estimates from per-sentence values: the bridge between resampling and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.resampling import LEVEL, bootstrap_group_mean, bootstrap_mean, bootstrap_ratio, resampled_sums
from bertology.results.estimate import Estimate, Estimates

UNSEEN = 3.0
"""What befalls so many of n items, or fewer, befalls none of n others in one case of twenty (the rule of three)."""


def mean_over_sentences(values: NDArray[Any], *, seed: int) -> Estimates:
    """The mean over sentences, each counting alike, with a bootstrap interval; NaN where a sentence has no value."""
    value, low, high, n = bootstrap_mean(values, seed=seed)
    return Estimates(value=value, low=low, high=high, n=n)


def pooled_over_sentences(counts: NDArray[Any], totals: NDArray[Any], *, seed: int) -> Estimates:
    """All counts over all totals, so that longer sentences weigh more, with a bootstrap interval over sentences."""
    value, low, high, n = bootstrap_ratio(counts, totals, seed=seed)
    return Estimates(value=value, low=low, high=high, n=n)


def mean_over_groups(values: NDArray[Any], groups: NDArray[Any], *, seed: int) -> Estimates:
    """The mean over groups of sentences (of one length, say) of the mean in each, with a bootstrap over sentences."""
    value, low, high, n = bootstrap_group_mean(values, groups, seed=seed)
    return Estimates(value=value, low=low, high=high, n=n)


def joined(estimates: Sequence[Estimates] | Sequence[Estimate]) -> Estimates:
    """Estimates made one at a time (by layer, say), each a number or an array, as one array along a new first axis."""
    fields = {name: np.stack([getattr(e, name) for e in estimates]) for name in ("value", "low", "high", "n")}
    return Estimates(**fields)


def over_sentences_and_seeds(
    sums: NDArray[Any], statistic: Callable[[NDArray[Any]], NDArray[Any]], *, seed: int
) -> Estimates:
    """A statistic of (seed, sentence, ...) counts summed over both, with an interval by resampling both.

    `statistic` is given the sums with any axes before theirs; n is the number of sentences.
    """
    whole, drawn = resampled_sums(sums, seed=seed)
    value = statistic(whole)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.nanpercentile(statistic(drawn), [tail, 100 - tail], axis=0)
    n = np.where(np.isfinite(value), sums.shape[1], 0)
    return Estimates(value=value, low=np.fmin(low, value), high=np.fmax(high, value), n=n)


def over_seeds(values: NDArray[Any]) -> Estimates:
    """(seed, ...) the mean over seeds, from the lowest of them to the highest; n is how many there are."""
    n = np.full(values.shape[1:], len(values), np.int64)
    return Estimates(value=values.mean(0), low=values.min(0), high=values.max(0), n=n)


def reaching_unseen(differences: Estimates, where: NDArray[np.bool_]) -> Estimates:
    """Differences of two scores, -1 to 1, whose intervals also hold what may befall items like these, but befell none.

    Only `where` that is asked for: one thing does not differ from itself, whatever the items.
    """
    least = np.where(where, UNSEEN / np.maximum(differences.n, 1), 0.0)
    low = np.fmin(differences.low, differences.value - least).clip(-1)
    high = np.fmax(differences.high, differences.value + least).clip(max=1)
    return Estimates(value=differences.value, low=low, high=high, n=differences.n)
