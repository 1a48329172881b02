"""From pieces to words: one vector a word from the vectors of its pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Pieces

Pooling = Literal["first", "last", "mean", "max", "sum"]


@dataclass(frozen=True, eq=False)
class Pooled:
    """`values` is (..., word, width); words that no piece belongs to are rows of NaN, and listed in `vanished`."""

    values: NDArray[Any]
    vanished: tuple[int, ...]


def pool(values: NDArray[Any], pieces: Pieces, how: Pooling = "mean") -> Pooled:
    """One vector a word from (..., piece, width): that of its first or last piece, or their mean, maximum or sum.

    In single precision at least, whatever the vectors are kept in.
    """
    aligned = np.flatnonzero(pieces.word >= 0)
    aligned = aligned[np.argsort(pieces.word[aligned], kind="stable")]
    present, starts, counts = np.unique(pieces.word[aligned], return_index=True, return_counts=True)
    pooled = np.full((*values.shape[:-2], pieces.words, values.shape[-1]), np.nan, np.result_type(values, np.float32))
    if len(present):
        # Halves would overflow or lose digits in a sum.
        sorted_by_word = values[..., aligned, :].astype(pooled.dtype, copy=False)
        pooled[..., present, :] = _pooled(sorted_by_word, starts, counts, how)
    vanished = np.setdiff1d(np.arange(pieces.words), present)
    return Pooled(pooled, tuple(vanished.tolist()))


def _pooled(values: NDArray[Any], starts: NDArray[np.intp], counts: NDArray[np.intp], how: Pooling) -> NDArray[Any]:
    """The same for pieces sorted by word, of which word i has `counts[i]` from `starts[i]` on."""
    match how:
        case "first":
            return values[..., starts, :]
        case "last":
            return values[..., starts + counts - 1, :]
        case "max":
            return np.maximum.reduceat(values, starts, axis=-2)
        case "sum":
            return np.add.reduceat(values, starts, axis=-2)
        case "mean":
            return np.add.reduceat(values, starts, axis=-2) / counts[:, None].astype(values.dtype)
