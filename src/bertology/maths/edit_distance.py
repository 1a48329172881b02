"""How far apart are two sequences? Insertions, deletions and substitutions, one each (Levenshtein 1966)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and substitutions from one to the other: 0 equal, at most the longer length."""
    return int(_table(one, other)[-1, -1])


def matched(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The places (in one, in the other) of what stays on a shortest way from one sequence to the other, in order."""
    table = _table(one, other)
    row, column = len(one), len(other)
    kept: list[tuple[int, int]] = []
    while row and column:
        here = table[row, column]
        if one[row - 1] == other[column - 1] and table[row - 1, column - 1] == here:
            row, column = row - 1, column - 1
            kept.append((row, column))
        elif table[row - 1, column - 1] + 1 == here:
            row, column = row - 1, column - 1
        elif table[row - 1, column] + 1 == here:
            row -= 1
        else:
            column -= 1
    return kept[::-1]


def _table(one: Sequence[Hashable], other: Sequence[Hashable]) -> Ints:
    """(row, column) the distance between the first so many of each."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys([*one, *other]))}
    first, second = (np.array([numbers[value] for value in some], np.int64) for some in (one, other))
    along = np.arange(len(second) + 1)
    table = np.empty((len(first) + 1, len(second) + 1), np.int64)
    table[0] = along
    for row, value in enumerate(first, start=1):
        above = table[row - 1]
        best = above + 1
        best[1:] = np.minimum(best[1:], above[:-1] + (second != value))
        # An insertion comes from the left, which is not known yet: the least of what is to the left plus the way.
        table[row] = np.minimum.accumulate(best - along) + along
    return table
