"""Planted context: names whose kind the word before them tells, and features that see it or do not.

`mr X` is a person and `in X` a place. `u` words are always of one kind and the most frequent, `b` words of either, and
`z` words are new each time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KNOWN = ("so", "mr", "in", "umr", "uin", "name", "slept")
KINDS = {"mr": "PER", "in": "LOC"}


def of_words(words: Sequence[str]) -> NDArray[np.float32]:
    """(word, width) a direction for each class of words: names of one kind are alike, other names are all alike."""
    return np.eye(len(KNOWN), dtype=np.float32)[[KNOWN.index(_class(word)) for word in words]]


def of_context(words: Sequence[str]) -> NDArray[np.float32]:
    """(word, 2 x width) the same, and that of the word before."""
    own = of_words(words)
    return np.concatenate([own, np.roll(own, 1, 0)], 1)


def sentence(kind: str, name: str, number: int) -> tuple[list[str], list[str]]:
    """Words and tags of a sentence about a name of that kind; the number tells it from others."""
    return ["so", kind, name, f"slept{number}"], ["O", "O", f"B-{KINDS[kind]}", "O"]


def conll(count: int, seed: int) -> str:
    """Sentences in columns: as many of each sort; the numbers of `z` words are the seed's own."""
    blocks: list[str] = []
    for number in range(count):
        for kind in KINDS:
            for name in (f"u{kind}", f"b{number % 4}", f"z{kind}x{seed}x{number}"):
                pairs = zip(*sentence(kind, name, number), strict=True)
                blocks.append("\n".join(f"{word}\t{tag}" for word, tag in pairs))
    return "\n\n".join(blocks) + "\n"


def _class(word: str) -> str:
    """Names that a table of words would tell apart are: those always of one kind by it, the others not at all."""
    return "name" if word[0] in "bz" else word.rstrip("0123456789")
