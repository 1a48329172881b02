"""Rows of random circulant matrices with signs: as many random vectors as wanted from few random numbers.

As in the released code of Arora et al. (2020): block k has weights g and signs e, and its row i is
`g[(i - j) mod d] * e[j]` for j from 0 to d - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def circulant_rows(rows: NDArray[np.integer[Any]], weights: Floats, signs: Floats) -> Floats:
    """(..., d) rows of the (block, d) weights and signs; row r is row r mod d of block r // d."""
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"rows are numbered by whole numbers, not by {rows.dtype}")
    blocks, width = weights.shape
    if rows.size and not (rows.min() >= 0 and rows.max() < blocks * width):
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {blocks * width}")
    block, place = np.divmod(rows[..., None], width)
    column = np.arange(width)
    return weights[block, (place - column) % width] * signs[block, column]


def scaled_to(norm: float, weights: Floats, rows: int) -> Floats:
    """The weights such that the mean norm of the first `rows` rows is `norm`."""
    blocks, width = weights.shape
    counts = np.clip(rows - width * np.arange(blocks), 0, width)
    mean = (counts * np.linalg.norm(weights, axis=1)).sum() / rows
    return (weights * (norm / mean)).astype(weights.dtype)
