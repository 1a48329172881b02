"""Planted inference: made-up words whose vectors give the label only by the relation of premise and hypothesis.

`p7` is a premise; `e7` has the same vector, `c7` the opposite one, `n7` an unrelated one. `x` words are noise.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WIDTH = 6
HEADER = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel"
LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def vectors(words: Sequence[str]) -> NDArray[np.float32]:
    """(word, width) planted vectors."""
    return np.stack([_vector(word) for word in words]) if words else np.zeros((0, WIDTH), np.float32)


def _vector(word: str) -> NDArray[np.float32]:
    kind, number = word[0], word[1:]
    key = number if kind in "pec" else word
    vector = np.random.default_rng(zlib.crc32(key.encode())).normal(size=WIDTH).astype(np.float32)
    return -vector if kind == "c" else vector


def training(count: int) -> str:
    """Training pairs, as a table of label, premise and hypothesis."""
    rows = [f"{LABELS[kind]}\tp{n}\t{kind}{n}" for n in range(count) for kind in "enc"]
    return "\n".join(["label\tpremise\thypothesis", *rows, ""])


def diagnostic(count: int) -> str:
    """Pairs of the category logic, whose vectors give the label, and of knowledge, whose vectors do not."""
    rows = [
        row
        for n in range(count)
        for kind, label in LABELS.items()
        for row in (
            f"\t\tNegation\t\tArtificial\tp90{n}\t{kind}90{n}\t{label}",
            f"\t\t\tCommon sense\tArtificial\tx{kind}80{n}\tx70{n}\t{label}",
        )
    ]
    return "\n".join([HEADER, *rows, ""])
