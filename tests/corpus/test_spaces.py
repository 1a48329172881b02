"""Spaces: sizes are exact, indices reach every value once, draws follow the weights, splits are disjoint."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus.checks import DETERMINED

from bertology.corpus.spaces import Space, among, arrangements, distinct, either, mapped, product, split


def values(space: Space[object]) -> list[object]:
    return [space.at(index) for index in range(space.size)]


@st.composite
def spaces(draw: st.DrawFn, depth: int = 2) -> Space[object]:
    """A small space of nested tuples, every leaf of which is different."""
    kind = draw(st.sampled_from(["among", "product", "either", "arrangements"])) if depth else "among"
    tag = draw(st.integers(0, 10**9))
    if kind == "among":
        return among([(tag, i) for i in range(draw(st.integers(1, 4)))])
    if kind == "arrangements":
        count = draw(st.integers(0, 4))
        return mapped(arrangements(range(4), count), lambda places: (tag, places))
    parts = draw(st.lists(spaces(depth=depth - 1), min_size=1, max_size=3))
    if kind == "product":
        return mapped(product(*parts), lambda chosen: (tag, chosen))
    return either(*((place + 1, mapped(part, lambda v, p=place: (p, v))) for place, part in enumerate(parts)))


@DETERMINED
@given(spaces(), st.integers(0, 99))
def test_every_value_is_reached_once_and_draws_stay_inside(space: Space[object], seed: int) -> None:
    assert len(set(values(space))) == space.size
    random = Random(seed)
    assert all(0 <= space.draw(random) < space.size for _ in range(10))


def test_sizes_are_products_sums_and_arrangements() -> None:
    two, three = among("ab"), among("cde")
    assert product(two, three).size == 6 and product(two, three).at(5) == ("b", "e")
    assert either((1, two), (1, three)).size == 5 and either((1, two), (1, three)).at(2) == "c"
    assert arrangements("abcd", 2).size == 12 and arrangements("abc", 3).at(5) == ("c", "b", "a")
    assert product().size == 1


def test_draws_follow_the_weights() -> None:
    random = Random(0)
    space = either((3, among("a")), (1, among("bcdefgh")))
    drawn = Counter(space.at(space.draw(random)) for _ in range(4000))
    assert drawn["a"] / 4000 == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("size", [1, 6, 7, 8, 20, 49, 50])
def test_a_split_has_every_value_on_one_side(size: int) -> None:
    kept, held = split(among(range(size)))
    assert {*values(kept), *values(held)} == set(range(size)) and kept.size + held.size == size
    random = Random(1)
    assert {held.at(held.draw(random)) for _ in range(400)} == set(values(held))
    if kept.size:
        assert {kept.at(kept.draw(random)) for _ in range(800)} == set(values(kept))


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20])
def test_distinct_values_are_distinct_up_to_all_of_them(count: int) -> None:
    drawn = distinct(among(range(20)), count, Random(3))
    assert len(set(drawn)) == len(drawn) == count


def test_what_the_weights_make_rare_is_drawn_in_the_end() -> None:
    lopsided = either((10**12, among(range(10))), (1, among(range(10, 200))))
    assert len(set(distinct(lopsided, 90, Random(0)))) == 90


def test_a_space_larger_than_memory_is_drawn_from() -> None:
    endless = product(*[among(range(10))] * 40)
    assert endless.size == 10**40
    assert len(set(distinct(endless, 50, Random(0)))) == 50
