"""Edit distances by hand, against a plain recursion, and the places that stay."""

from __future__ import annotations

import random
from functools import cache

import pytest

from bertology.numerics.edit_distance import alignment, edit_distance


def by_recursion(one: str, other: str) -> int:
    @cache
    def distance(a: int, b: int) -> int:
        if not a or not b:
            return a + b
        same = distance(a - 1, b - 1) + (one[a - 1] != other[b - 1])
        return min(same, distance(a - 1, b) + 1, distance(a, b - 1) + 1)

    return distance(len(one), len(other))


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("", "", 0), ("ab", "ba", 2), ("abc", "abc", 0)],
)
def test_by_hand(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other) == distance


def test_against_recursion() -> None:
    draw = random.Random(1)
    for _ in range(60):
        one, other = ("".join(draw.choices("abcd", k=draw.randrange(9))) for _ in range(2))
        assert edit_distance(one, other) == by_recursion(one, other)
        kept = alignment(one, other)
        assert all(one[a] == other[b] for a, b in kept)
        assert kept == sorted(set(kept)) and len({a for a, _ in kept}) == len({b for _, b in kept}) == len(kept)


def test_what_stays() -> None:
    assert alignment(["a", "red", "dog"], ["a", "dog"]) == [(0, 0), (2, 1)]
    assert alignment(["a", "b"], ["c", "d"]) == []
    assert alignment([], ["c"]) == []
