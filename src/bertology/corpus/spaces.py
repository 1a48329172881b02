"""Finite spaces of values: counted exactly, indexed, and drawn from with weights.

A grammar is a space built from smaller ones. Its size is the number of its derivations, `at(i)` is the i-th of them,
and `draw` gives an index at random, so that values can be drawn without repetition however large the space is.
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

HELD_OUT = 7
"""One index in this many is held out for testing; coprime to every word list, so that no word decides the split."""


@dataclass(frozen=True)
class Space(Generic[T_co]):
    """`size` values, `at` an index from 0; `draw` picks an index with the space's own weights."""

    size: int
    at: Callable[[int], T_co]
    draw: Callable[[Random], int]


def among(values: Sequence[T]) -> Space[T]:
    """One of the values, all alike."""
    kept = tuple(values)
    return Space(len(kept), kept.__getitem__, lambda random: random.randrange(len(kept)))


def product(*spaces: Space[T]) -> Space[tuple[T, ...]]:
    """One value of each space, independently; the last one varies fastest."""

    def at(index: int) -> tuple[T, ...]:
        chosen: list[T] = []
        for space in reversed(spaces):
            index, digit = divmod(index, space.size)
            chosen.append(space.at(digit))
        return tuple(reversed(chosen))

    def draw(random: Random) -> int:
        index = 0
        for space in spaces:
            index = index * space.size + space.draw(random)
        return index

    return Space(prod(space.size for space in spaces), at, draw)


def either(*options: tuple[int, Space[T]]) -> Space[T]:
    """A value of one of the spaces, which are drawn from in proportion to their weights; they must be disjoint."""
    total = sum(weight for weight, _ in options)

    def at(index: int) -> T:
        for _, space in options:
            if index < space.size:
                return space.at(index)
            index -= space.size
        raise IndexError(index)

    def draw(random: Random) -> int:
        pointer, before = random.randrange(total), 0
        for weight, space in options:
            if pointer < weight:
                return before + space.draw(random)
            pointer -= weight
            before += space.size
        raise AssertionError("the weights are summed above")

    return Space(sum(space.size for _, space in options), at, draw)


def arrangements(values: Sequence[T], count: int) -> Space[tuple[T, ...]]:
    """`count` different values in order, all arrangements alike."""
    kept = tuple(values)
    radices = [len(kept) - place for place in range(count)]

    def at(index: int) -> tuple[T, ...]:
        digits: list[int] = []
        for radix in reversed(radices):
            index, digit = divmod(index, radix)
            digits.append(digit)
        left = list(kept)
        return tuple(left.pop(digit) for digit in reversed(digits))

    size = prod(radices)
    return Space(size, at, lambda random: random.randrange(size))


def mapped(space: Space[T], change: Callable[[T], U]) -> Space[U]:
    """The same space with every value changed; different values must stay different."""
    return Space(space.size, lambda index: change(space.at(index)), space.draw)


def split(space: Space[T]) -> tuple[Space[T], Space[T]]:
    """The space in two disjoint parts, for training and for testing: every seventh value is held out."""
    held = -(-space.size // HELD_OUT)

    def draw_held(random: Random) -> int:
        while (index := space.draw(random)) % HELD_OUT:
            pass
        return index // HELD_OUT

    def draw_kept(random: Random) -> int:
        while not (index := space.draw(random)) % HELD_OUT:
            pass
        return index - index // HELD_OUT - 1

    kept = Space(space.size - held, lambda index: space.at(index + index // (HELD_OUT - 1) + 1), draw_kept)
    return kept, Space(held, lambda index: space.at(index * HELD_OUT), draw_held)


def distinct(space: Space[T], count: int, random: Random) -> list[T]:
    """`count` different values of the space in random order.

    Few of many are drawn with the space's weights; what the weights make too rare to come up is drawn evenly.
    """
    if 2 * count > space.size:
        return [space.at(index) for index in random.sample(range(space.size), count)]
    indices: dict[int, None] = {}
    tries = 0
    while len(indices) < count:
        tries += 1
        indices[space.draw(random) if tries <= 20 * count else random.randrange(space.size)] = None
    return [space.at(index) for index in indices]
