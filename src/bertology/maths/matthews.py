"""Matthews' correlation of what is said with what is so, of any number of classes (Gorodkin's R_K); no BERT here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def matthews(counts: NDArray[np.number]) -> NDArray[np.float64]:
    """(...) from (..., so, said) counts: 1 all right, 0 no better than chance, down to -1.

    Who always says the same scores 0. NaN where everything is of one class, or nothing is there: nothing to tell apart.
    """
    cells = np.asarray(counts, np.float64)
    total = cells.sum((-2, -1))
    so, said = cells.sum(-1), cells.sum(-2)
    right = np.trace(cells, axis1=-2, axis2=-1)
    spread = total**2 - (so**2).sum(-1)
    product = np.sqrt(spread.clip(0) * (total**2 - (said**2).sum(-1)).clip(0))
    top = right * total - (so * said).sum(-1)
    found = np.divide(top, product, out=np.zeros_like(top), where=product > 1e-9 * np.maximum(total, 1) ** 2)
    return np.where(spread > 0, found, np.nan)
