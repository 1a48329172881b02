"""Collocations: adjacent words that occur together more often than by chance (normalised PMI, Bouma 2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

MIN_COUNT = 5
MIN_NPMI = 0.5


def collocations(
    sentences: Iterable[Sequence[str]],
    *,
    min_count: int = MIN_COUNT,
    min_npmi: float = MIN_NPMI,
) -> frozenset[tuple[str, str]]:
    """Adjacent pairs (first, second) with at least this count and this normalised PMI.

    The normalised PMI is ln(p(xy) / (p(x) p(y))) / -ln p(xy): 0 for independent words, 1 for words that only occur
    together.
    """
    firsts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for words in sentences:
        for pair in pairwise(words):
            pairs[pair] += 1
            firsts[pair[0]] += 1
            seconds[pair[1]] += 1
    total = sum(pairs.values())

    def npmi(pair: tuple[str, str]) -> float:
        if pairs[pair] == total:
            return 1.0
        expected = firsts[pair[0]] * seconds[pair[1]] / total
        return math.log(pairs[pair] / expected) / -math.log(pairs[pair] / total)

    frequent = (pair for pair, count in pairs.items() if count >= min_count)
    return frozenset(pair for pair in frequent if npmi(pair) >= min_npmi)
