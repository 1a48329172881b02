"""How far two classifiers agree beyond chance (Cohen 1960)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cohen_kappa(joint: NDArray[np.floating]) -> Floats:
    """(...) kappa from (..., class, class) counts or shares: 1 always the same, 0 as by chance, negative less.

    NaN where both put everything into one class: chance agreement is then complete and nothing can be said.
    """
    shares = joint / joint.sum((-2, -1), keepdims=True)
    agreed = np.trace(shares, axis1=-2, axis2=-1)
    by_chance = (shares.sum(-1) * shares.sum(-2)).sum(-1)
    rest = 1 - by_chance
    return np.divide(agreed - by_chance, rest, out=np.full_like(rest, np.nan), where=rest > 1e-12)
