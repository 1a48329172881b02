"""Edit distance of two sequences and an optimal alignment; all edits cost 1 (Levenshtein 1966)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from bertology.arrays import IntArray


def edit_distance(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The minimum number of insertions, deletions and substitutions, from 0 to the longer length."""
    return int(_distance_table(left, right)[-1, -1])


def alignment(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The (left, right) indices of the elements that an optimal alignment leaves unchanged, in order."""
    table = _distance_table(left, right)
    row, column = len(left), len(right)
    unchanged: list[tuple[int, int]] = []
    while row and column:
        distance = table[row, column]
        if left[row - 1] == right[column - 1] and table[row - 1, column - 1] == distance:
            row, column = row - 1, column - 1
            unchanged.append((row, column))
        elif table[row - 1, column - 1] + 1 == distance:
            row, column = row - 1, column - 1
        elif table[row - 1, column] + 1 == distance:
            row -= 1
        else:
            column -= 1
    return unchanged[::-1]


def _distance_table(left: Sequence[Hashable], right: Sequence[Hashable]) -> IntArray:
    """(row, column) the distance between the first `row` elements of one and the first `column` of the other."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys([*left, *right]))}
    first, second = (np.array([numbers[value] for value in sequence], np.int64) for sequence in (left, right))
    columns = np.arange(len(second) + 1)
    table = np.empty((len(first) + 1, len(second) + 1), np.int64)
    table[0] = columns
    for row, value in enumerate(first, start=1):
        above = table[row - 1]
        best = above + 1
        best[1:] = np.minimum(best[1:], above[:-1] + (second != value))
        # Insertions come from the cell to the left, not yet computed: take the minimum over all cells to the left.
        table[row] = np.minimum.accumulate(best - columns) + columns
    return table
