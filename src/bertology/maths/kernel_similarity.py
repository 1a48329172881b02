"""How alike are two kernels over the same observations: RSA (kriegeskorte2008) and CKA (kornblith2019).

Every function takes sums over pairs (`kernel_sums`) and gives (1 + group,) numbers: for all observations, then without
each group; NaN where a kernel does not vary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertology.maths.kernel_sums import KernelSums

Floats = NDArray[np.float64]

LEAST_VARIANCE = 1e-12
"""Of the mean square: a kernel that varies less does not vary, but for rounding."""


def pearson(sums: KernelSums) -> Floats:
    """Pearson's correlation of the two kernels over pairs of different observations: -1 to 1.

    Equal to that over the strictly upper triangles, as both kernels are symmetric.
    """
    pairs = sums.count * (sums.count - 1)
    means = [marginals.rows.sum(1) / pairs for marginals in (sums.first, sums.second)]
    squares = [sums.first_squared / pairs, sums.second_squared / pairs]
    variances = [square - mean**2 for square, mean in zip(squares, means, strict=True)]
    varies = [v > LEAST_VARIANCE * square for v, square in zip(variances, squares, strict=True)]
    return _ratio(sums.both / pairs - means[0] * means[1], variances[0] * variances[1], varies[0] & varies[1])


def cka(sums: KernelSums, *, unbiased: bool = False) -> Floats:
    """Centred kernel alignment: 0 nothing in common, 1 equal up to scale; unbiased it can be slightly below 0.

    The plain form is above 0 by chance, the more so the more features there are to an observation. The unbiased one
    estimates each part of the ratio without the diagonals (song2012).
    """
    independence = _unbiased_hsic if unbiased else _hsic
    parts = [independence(some) for some in (sums, sums.alone(), sums.turned().alone())]
    scale = np.square(sums.first.diagonal).sum(1), np.square(sums.second.diagonal).sum(1)
    varies = [part > LEAST_VARIANCE * size for part, size in zip(parts[1:], scale, strict=True)]
    return _ratio(parts[0], parts[1] * parts[2], varies[0] & varies[1])


def _hsic(sums: KernelSums) -> Floats:
    """tr(K H L H), the Hilbert-Schmidt independence criterion but for a factor."""
    first, second, n = sums.first, sums.second, sums.count
    rows = first.rows + first.diagonal, second.rows + second.diagonal
    whole = sums.both + (first.diagonal * second.diagonal).sum(1)
    return whole - 2 / n * (rows[0] * rows[1]).sum(1) + rows[0].sum(1) * rows[1].sum(1) / n**2


def _unbiased_hsic(sums: KernelSums) -> Floats:
    """The same without bias, but for a factor; needs four observations."""
    rows, n = (sums.first.rows, sums.second.rows), sums.count
    totals = rows[0].sum(1) * rows[1].sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = sums.both + totals / ((n - 1) * (n - 2)) - 2 / (n - 2) * (rows[0] * rows[1]).sum(1)
    return np.where(n > 3, found, np.nan)


def _ratio(top: Floats, squared: Floats, defined: NDArray[np.bool_]) -> Floats:
    return np.divide(top, np.sqrt(np.where(defined, squared, 1.0)), out=np.full_like(top, np.nan), where=defined)
