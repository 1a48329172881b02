"""Control labels: every type of word is given a random label of its own (hewitt2019control)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Strings = NDArray[Any]


def random_labels(types: Strings, draw: int, edges: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """A label for each type, the same wherever it occurs, in the proportions that the edges of [0, 1) cut.

    It depends on the type and the draw alone: a type has the same label in training and in the test.
    """

    def uniform(type: str) -> float:
        digest = hashlib.sha256(f"{draw}\n{type}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "little") / 2**64

    drawn = {type: uniform(type) for type in set(types.ravel().tolist())}
    values = np.array([drawn[type] for type in types.ravel().tolist()], np.float64)
    return np.searchsorted(edges, values, side="right").reshape(types.shape)
