"""Planted context: entities whose type follows from the word before them, and features that see this word or do not.

`mr X` is a person and `in X` a place. `u` words always have the same type and are the most frequent, `b` words have
both types, and `z` words occur once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORD_CLASSES = ("so", "mr", "in", "umr", "uin", "name", "slept")
TYPES = {"mr": "PER", "in": "LOC"}


def word_only(words: Sequence[str]) -> NDArray[np.float32]:
    """(word, width) a one-hot vector for each word class; entities of both types share a class."""
    return np.eye(len(WORD_CLASSES), dtype=np.float32)[[WORD_CLASSES.index(_word_class(word)) for word in words]]


def word_and_previous(words: Sequence[str]) -> NDArray[np.float32]:
    """(word, 2 x width) the one-hot vectors of the word and of the word before."""
    vectors = word_only(words)
    return np.concatenate([vectors, np.roll(vectors, 1, 0)], 1)


def sentence(marker: str, name: str, number: int) -> tuple[list[str], list[str]]:
    """Words and tags of a sentence with an entity; `number` makes its text unique."""
    return ["so", marker, name, f"slept{number}"], ["O", "O", f"B-{TYPES[marker]}", "O"]


def conll(count: int, seed: int) -> str:
    """Sentences in CoNLL columns, as many of each sort; the `z` words of different seeds differ."""
    blocks: list[str] = []
    for number in range(count):
        for marker in TYPES:
            for name in (f"u{marker}", f"b{number % 4}", f"z{marker}x{seed}x{number}"):
                pairs = zip(*sentence(marker, name, number), strict=True)
                blocks.append("\n".join(f"{word}\t{tag}" for word, tag in pairs))
    return "\n\n".join(blocks) + "\n"


def _word_class(word: str) -> str:
    """The class of a word; entities that do not always have the same type are all in the class `name`."""
    return "name" if word[0] in "bz" else word.rstrip("0123456789")
