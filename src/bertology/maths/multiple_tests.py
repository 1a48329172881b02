"""Many heads tried at once: one-sided paired tests, and p values that account for how many were made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def paired_above(differences: NDArray[np.floating]) -> Floats:
    """(...) one-sided p of Student's t test that the mean over the first axis is above 0; NaN counts nowhere.

    Differences that never vary have p 0 where they are above 0 and 1 else; with fewer than two there is no p (NaN).
    """
    known = np.isfinite(differences)
    n = known.sum(0)
    filled = np.where(known, differences, 0.0).astype(np.float64)
    mean = filled.sum(0) / np.maximum(n, 1)
    squares = np.where(known, (filled - mean) ** 2, 0.0).sum(0)
    error = np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1))
    varied = error > 1e-12
    t = np.divide(mean, error, out=np.zeros_like(mean), where=varied)
    p = np.where(varied, stats.t.sf(t, np.maximum(n - 1, 1)), np.where(mean > 0, 0.0, 1.0))
    return np.where(n > 1, p, np.nan)


def holm(p: NDArray[np.floating]) -> Floats:
    """The p values adjusted for their number (Holm 1979); those that are NaN were not tested and do not count."""
    flat = p.reshape(-1).astype(np.float64)
    tested = np.flatnonzero(np.isfinite(flat))
    order = tested[np.argsort(flat[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted = np.full_like(flat, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(flat[order] * factors)) if len(order) else []
    return adjusted.reshape(p.shape)
