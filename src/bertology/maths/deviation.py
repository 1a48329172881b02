"""How far rows lie from their own mean, in sums of absolute differences; arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def share_of_deviation(rows: Sequence[NDArray[Any]]) -> tuple[Floats, Floats]:
    """(row, ...) numerators and denominators of the share of weight by which rows differ from their mean.

    Rows are (..., a, b) weights that are not negative, all NaN where there is nothing to compare. The sum of all
    numerators over the sum of all denominators is Σ|x - mean| / 2 Σx: 0 where all rows are alike, 1 - 1/n at most.

    The mean is made of the rows, so resampling them moves it too. Each numerator therefore carries, beside its own
    deviation, what its row does to the others' by moving the mean (the infinitesimal jackknife); these parts sum to 0.
    Rows are gone through three times and never held together. Where only one row is measured nothing is (0 over 0).
    """
    measured = np.stack([np.isfinite(row[..., 0, 0]) for row in rows])
    count = measured.sum(0)
    several = count > 1
    mean = sum(_filled(row) for row in rows) / np.maximum(count, 1)[..., None, None]
    signs = sum(np.sign(_deviation(row, mean)) for row in rows) / np.maximum(count, 1)[..., None, None]
    tops: list[Floats] = []
    bottoms: list[Floats] = []
    for row in rows:
        deviation = _deviation(row, mean)
        tops.append(several * (np.abs(deviation) - signs * deviation).sum((-2, -1)))
        bottoms.append(several * 2 * _filled(row).sum((-2, -1)))
    return np.stack(tops), np.stack(bottoms)


def _filled(row: NDArray[Any]) -> Floats:
    return np.nan_to_num(row.astype(np.float64), nan=0.0)


def _deviation(row: NDArray[Any], mean: Any) -> Floats:
    """The row less the mean, 0 where nothing is measured."""
    return np.nan_to_num(row.astype(np.float64) - mean, nan=0.0)
