"""Edit distances by hand and against a plain recursion, and the alignment of unchanged elements."""

from __future__ import annotations

import random
from functools import cache

import pytest

from bertology.numerics.edit_distance import alignment, edit_distance


def by_recursion(first: str, second: str) -> int:
    @cache
    def distance(a: int, b: int) -> int:
        if not a or not b:
            return a + b
        same = distance(a - 1, b - 1) + (first[a - 1] != second[b - 1])
        return min(same, distance(a - 1, b) + 1, distance(a, b - 1) + 1)

    return distance(len(first), len(second))


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("", "", 0), ("ab", "ba", 2), ("abc", "abc", 0)],
)
def test_distances_by_hand(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


def test_distances_equal_a_plain_recursion() -> None:
    rng = random.Random(1)
    for _ in range(60):
        first, second = ("".join(rng.choices("abcd", k=rng.randrange(9))) for _ in range(2))
        assert edit_distance(first, second) == by_recursion(first, second)
        aligned = alignment(first, second)
        assert all(first[a] == second[b] for a, b in aligned)
        assert aligned == sorted(set(aligned)) and len({a for a, _ in aligned}) == len({b for _, b in aligned}) == len(
            aligned
        )


def test_unchanged_elements_are_aligned() -> None:
    assert alignment(["a", "red", "dog"], ["a", "dog"]) == [(0, 0), (2, 1)]
    assert alignment(["a", "b"], ["c", "d"]) == []
    assert alignment([], ["c"]) == []
