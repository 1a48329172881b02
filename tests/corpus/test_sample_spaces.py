"""Sample spaces: exact sizes, one index per value, samples that follow the weights, disjoint splits."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.sample_spaces import (
    SampleSpace,
    map_space,
    permutations,
    product,
    sample_distinct,
    split_train_test,
    uniform,
    union,
)


def values(space: SampleSpace[object]) -> list[object]:
    return [space.element(index) for index in range(space.size)]


@st.composite
def spaces(draw: st.DrawFn, depth: int = 2) -> SampleSpace[object]:
    """A small space of nested tuples with different leaves."""
    kind = draw(st.sampled_from(["uniform", "product", "union", "permutations"])) if depth else "uniform"
    tag = draw(st.integers(0, 10**9))
    if kind == "uniform":
        return uniform([(tag, i) for i in range(draw(st.integers(1, 4)))])
    if kind == "permutations":
        count = draw(st.integers(0, 4))
        return map_space(permutations(range(4), count), lambda indices: (tag, indices))
    parts = draw(st.lists(spaces(depth=depth - 1), min_size=1, max_size=3))
    if kind == "product":
        return map_space(product(*parts), lambda values: (tag, values))
    return union(*((index + 1, map_space(part, lambda v, i=index: (i, v))) for index, part in enumerate(parts)))


@given(spaces(), st.integers(0, 99))
def test_every_value_has_one_index_and_samples_are_in_range(space: SampleSpace[object], seed: int) -> None:
    assert len(set(values(space))) == space.size
    rng = Random(seed)
    assert all(0 <= space.sample_index(rng) < space.size for _ in range(10))


def test_sizes_are_products_sums_and_numbers_of_permutations() -> None:
    two, three = uniform("ab"), uniform("cde")
    assert product(two, three).size == 6 and product(two, three).element(5) == ("b", "e")
    assert union((1, two), (1, three)).size == 5 and union((1, two), (1, three)).element(2) == "c"
    assert permutations("abcd", 2).size == 12 and permutations("abc", 3).element(5) == ("c", "b", "a")
    assert product().size == 1


def test_samples_follow_the_weights() -> None:
    rng = Random(0)
    space = union((3, uniform("a")), (1, uniform("bcdefgh")))
    counts = Counter(space.element(space.sample_index(rng)) for _ in range(4000))
    assert counts["a"] / 4000 == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("size", [1, 6, 7, 8, 20, 49, 50])
def test_every_value_is_in_one_split(size: int) -> None:
    train, test = split_train_test(uniform(range(size)))
    assert {*values(train), *values(test)} == set(range(size)) and train.size + test.size == size
    rng = Random(1)
    assert {test.element(test.sample_index(rng)) for _ in range(400)} == set(values(test))
    if train.size:
        assert {train.element(train.sample_index(rng)) for _ in range(800)} == set(values(train))


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20])
def test_distinct_samples_of_any_size_are_distinct(count: int) -> None:
    sample = sample_distinct(uniform(range(20)), count, Random(3))
    assert len(set(sample)) == len(sample) == count


def test_values_of_low_weight_are_sampled_if_needed() -> None:
    skewed = union((10**12, uniform(range(10))), (1, uniform(range(10, 200))))
    assert len(set(sample_distinct(skewed, 90, Random(0)))) == 90


def test_a_space_larger_than_memory_can_be_sampled() -> None:
    huge = product(*[uniform(range(10))] * 40)
    assert huge.size == 10**40
    assert len(set(sample_distinct(huge, 50, Random(0)))) == 50
