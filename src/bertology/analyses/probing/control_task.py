"""Control tasks: every word type gets a random label, the same wherever it occurs (hewitt2019control)."""

from __future__ import annotations

import numpy as np

from bertology.arrays import Array, IntArray
from bertology.corpus.corpus import seeded_hash


def assign_control_labels(types: Array, seed: int, label_boundaries: Array) -> IntArray:
    """A random label for each type, in the proportions given by the inner boundaries of [0, 1).

    The label depends only on the type and the seed, so a type has the same label in training and test data.
    """

    def uniform(word_type: str) -> float:
        return int.from_bytes(seeded_hash(word_type, seed)[:8], "little") / 2**64

    values_by_type = {word_type: uniform(word_type) for word_type in set(types.ravel().tolist())}
    values = np.array([values_by_type[word_type] for word_type in types.ravel().tolist()], np.float64)
    return np.searchsorted(label_boundaries, values, side="right").reshape(types.shape)
