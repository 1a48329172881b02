"""Neighbouring words that stand together more than chance would have it (normalised PMI, Bouma 2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

LEAST_TOGETHER = 5
LEAST_ASSOCIATION = 0.5


def collocations(
    sentences: Iterable[Sequence[str]],
    *,
    least_together: int = LEAST_TOGETHER,
    least_association: float = LEAST_ASSOCIATION,
) -> frozenset[tuple[str, str]]:
    """Pairs (first, second) of neighbours found together often enough, with a normalised PMI high enough.

    The normalised PMI is ln(p(xy) / (p(x) p(y))) / -ln p(xy): 0 as by chance, 1 never one without the other.
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

    def association(pair: tuple[str, str]) -> float:
        if pairs[pair] == total:
            return 1.0
        chance = firsts[pair[0]] * seconds[pair[1]] / total
        return math.log(pairs[pair] / chance) / -math.log(pairs[pair] / total)

    often = (pair for pair, count in pairs.items() if count >= least_together)
    return frozenset(pair for pair in often if association(pair) >= least_association)
