"""Rank correlation of two kernels over the same observations, pairs being counted in classes and never all held.

Spearman's variant of RSA (kriegeskorte2008).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bertology.maths.jackknife import Groups
from bertology.maths.kernel_sums import CELLS_AT_ONCE, Rows

Floats = NDArray[np.float64]

CLASSES = 256
FINE_CLASSES = 2**16
LEAST_VARIANCE = 1e-12


def spearman(first: Rows, second: Rows, groups: Groups) -> Floats:
    """(1 + group,) Spearman's correlation over pairs of different observations, within about 1e-4: all, without each.

    Values are put into 256 classes with as many pairs each, and those of one class share a rank; what is kept is how
    many pairs there are in each two classes, with and without each group, so that ranks are those of the pairs left.
    """
    edges = [_quantiles(rows, len(groups)) for rows in (first, second)]
    number = int(groups.max()) + 1
    touched, own = (np.zeros((number, CLASSES, CLASSES)) for _ in range(2))
    for some, different in _blocks(len(groups)):
        one, other = (
            np.searchsorted(edge, rows(some), side="right") for edge, rows in zip(edges, (first, second), strict=True)
        )
        joint = one * CLASSES + other
        for group in np.unique(groups[some]):
            rows = groups[some] == group
            inside = different & (groups == group)
            touched[group] += _counted(joint[rows][different[rows]])
            own[group] += _counted(joint[rows][inside[rows]])
    total = touched.sum(0)
    left = [total - 2 * touching + inner for touching, inner in zip(touched, own, strict=True)] if number > 1 else []
    return np.array([_rank_correlation(table) for table in (total, *left)])


def _blocks(size: int) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """A few rows at a time, and which of their pairs are of different observations."""
    step = max(1, CELLS_AT_ONCE // size)
    for start in range(0, size, step):
        some = slice(start, min(size, start + step))
        yield some, np.arange(some.start, some.stop)[:, None] != np.arange(size)


def _counted(joint: NDArray[np.intp]) -> Floats:
    return np.bincount(joint, minlength=CLASSES**2).reshape(CLASSES, CLASSES).astype(np.float64)


def _quantiles(kernel: Rows, size: int) -> Floats:
    """(CLASSES - 1,) values between which as many pairs lie, to one 65,536th of the range."""
    low, high = np.inf, -np.inf
    for some, different in _blocks(size):
        values = kernel(some)[different]
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    counts = np.zeros(FINE_CLASSES)
    width = (high - low) / FINE_CLASSES
    if not width > 0:
        return np.full(CLASSES - 1, np.inf)
    for some, different in _blocks(size):
        places = ((kernel(some)[different] - low) / width).astype(np.intp)
        counts += np.bincount(places.clip(max=FINE_CLASSES - 1), minlength=FINE_CLASSES)
    places = np.searchsorted(np.cumsum(counts) / counts.sum(), np.arange(1, CLASSES) / CLASSES)
    return np.asarray(low + (places + 1) * width, np.float64)


def _rank_correlation(table: Floats) -> float:
    """Pearson's correlation of middle ranks from a table of counts."""
    counts = [table.sum(1), table.sum(0)]
    n = counts[0].sum()
    ranks = [(np.cumsum(count) - count / 2) / n - 0.5 for count in counts]
    variances = [float((count * rank**2).sum()) for count, rank in zip(counts, ranks, strict=True)]
    if min(variances) <= LEAST_VARIANCE * n:
        return float("nan")
    return float(ranks[0] @ table @ ranks[1] / np.sqrt(variances[0] * variances[1]))
