"""Finite sample spaces: counted exactly, indexed, and sampled with weights.

A grammar is a space composed of smaller spaces. Its size is the number of its derivations, `element(i)` is the i-th of
them, and `sample_index` returns a random index, so that values can be sampled without replacement from a space of any
size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)

TEST_INTERVAL = 7
"""Every seventh index is a test value. 7 is coprime to the length of all word lists, so no word decides the split."""


@dataclass(frozen=True)
class SampleSpace(Generic[T_co]):
    """A space of `size` values: `element` returns the value of an index, `sample_index` a weighted random index."""

    size: int
    element: Callable[[int], T_co]
    sample_index: Callable[[Random], int]


def uniform(values: Sequence[T]) -> SampleSpace[T]:
    """Return the space of the values, all equally likely."""
    values = tuple(values)
    return SampleSpace(len(values), values.__getitem__, lambda rng: rng.randrange(len(values)))


def product(*spaces: SampleSpace[T]) -> SampleSpace[tuple[T, ...]]:
    """Return the space of tuples of independent values, one of each space; the last value varies fastest."""

    def element(index: int) -> tuple[T, ...]:
        values: list[T] = []
        for space in reversed(spaces):
            index, digit = divmod(index, space.size)
            values.append(space.element(digit))
        return tuple(reversed(values))

    def sample_index(rng: Random) -> int:
        index = 0
        for space in spaces:
            index = index * space.size + space.sample_index(rng)
        return index

    return SampleSpace(prod(space.size for space in spaces), element, sample_index)


def union(*weighted_spaces: tuple[int, SampleSpace[T]]) -> SampleSpace[T]:
    """Return the union of disjoint spaces, each sampled in proportion to its weight."""
    total = sum(weight for weight, _ in weighted_spaces)

    def element(index: int) -> T:
        for _, space in weighted_spaces:
            if index < space.size:
                return space.element(index)
            index -= space.size
        raise IndexError(index)

    def sample_index(rng: Random) -> int:
        pointer, offset = rng.randrange(total), 0
        for weight, space in weighted_spaces:
            if pointer < weight:
                return offset + space.sample_index(rng)
            pointer -= weight
            offset += space.size
        raise AssertionError("pointer is less than the sum of the weights")

    return SampleSpace(sum(space.size for _, space in weighted_spaces), element, sample_index)


def permutations(values: Sequence[T], count: int) -> SampleSpace[tuple[T, ...]]:
    """Return the space of ordered selections of `count` different values, all equally likely."""
    values = tuple(values)
    radices = [len(values) - index for index in range(count)]

    def element(index: int) -> tuple[T, ...]:
        digits: list[int] = []
        for radix in reversed(radices):
            index, digit = divmod(index, radix)
            digits.append(digit)
        remaining = list(values)
        return tuple(remaining.pop(digit) for digit in reversed(digits))

    size = prod(radices)
    return SampleSpace(size, element, lambda rng: rng.randrange(size))


def map_space(space: SampleSpace[T], function: Callable[[T], U]) -> SampleSpace[U]:
    """Apply an injective function to all values of a space."""
    return SampleSpace(space.size, lambda index: function(space.element(index)), space.sample_index)


def split_train_test(space: SampleSpace[T]) -> tuple[SampleSpace[T], SampleSpace[T]]:
    """Split a space into disjoint training and test spaces: every seventh value is a test value."""
    test_size = -(-space.size // TEST_INTERVAL)

    def sample_test_index(rng: Random) -> int:
        while (index := space.sample_index(rng)) % TEST_INTERVAL:
            pass
        return index // TEST_INTERVAL

    def sample_train_index(rng: Random) -> int:
        while not (index := space.sample_index(rng)) % TEST_INTERVAL:
            pass
        return index - index // TEST_INTERVAL - 1

    def train_element(index: int) -> T:
        return space.element(index + index // (TEST_INTERVAL - 1) + 1)

    train = SampleSpace(space.size - test_size, train_element, sample_train_index)
    return train, SampleSpace(test_size, lambda index: space.element(index * TEST_INTERVAL), sample_test_index)


def sample_distinct(space: SampleSpace[T], count: int, rng: Random) -> list[T]:
    """Sample `count` different values in random order.

    Small samples follow the weights of the space; values with weights too low to occur are then sampled uniformly.
    """
    if 2 * count > space.size:
        return [space.element(index) for index in rng.sample(range(space.size), count)]
    indices: dict[int, None] = {}
    n_tries = 0
    while len(indices) < count:
        n_tries += 1
        indices[space.sample_index(rng) if n_tries <= 20 * count else rng.randrange(space.size)] = None
    return [space.element(index) for index in indices]
