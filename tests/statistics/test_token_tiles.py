"""Tiles hold every token once, and whole words."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.token_batches import CLS, NONE, SEP, make_input

from bertology.encoder.token_batch import TokenBatch
from bertology.statistics.token_tiles import TILE_SIZE, number_words, pack_words, token_tiles

WORDS = st.lists(st.lists(st.integers(-1, 7), max_size=40), min_size=1, max_size=3)


@settings(max_examples=300)
@given(WORDS, st.integers(2, 9))
def test_every_token_is_in_one_slot_and_every_word_in_one_tile(rows: list[list[int]], tile_size: int) -> None:
    """The words of an input may have any order, and their tokens need not be adjacent."""
    size = max(1, *map(len, rows))
    word_ids = np.array([row + [-1] * (size - len(row)) for row in rows], np.int32)
    is_token = np.array([[True] * len(row) + [False] * (size - len(row)) for row in rows])
    order = pack_words(word_ids, is_token, tile_size)
    if order is None:
        assert max(row.count(word) for row in rows for word in row if word >= 0) > tile_size
        return
    for row, slots in zip(rows, order.tolist(), strict=True):
        assert sorted(slot for slot in slots if slot >= 0) == list(range(len(row)))
        for word in {word for word in row if word >= 0}:
            used = [index for index, slot in enumerate(slots) if slot >= 0 and row[slot] == word]
            assert used[0] // tile_size == used[-1] // tile_size
            assert used == list(range(used[0], used[-1] + 1))


def test_a_word_that_would_cross_the_end_of_a_tile_changes_places_with_the_next_single_tokens() -> None:
    order = pack_words(np.array([[0, 1, 2, 3, 3, 4, 5, 5, 6]], np.int32), np.ones((1, 9), np.bool_), 4)
    assert order is not None
    assert order.tolist() == [[0, 1, 2, 5, 3, 4, 6, 7, 8, -1, -1, -1]]


def test_empty_slots_fill_places_if_there_are_no_single_tokens() -> None:
    order = pack_words(np.array([[0, 0, 0, 1, 1, 1]], np.int32), np.ones((1, 6), np.bool_), 4)
    assert order is not None
    assert order.tolist() == [[0, 1, 2, -1, 3, 4, 5, -1]]
    assert pack_words(np.zeros((1, 6), np.int32), np.ones((1, 6), np.bool_), 4) is None


def test_words_of_a_tile_are_numbered_from_0() -> None:
    numbers, sizes, words = number_words(np.array([[[-1, 7, 7, 3], [9, -1, 8, 8]]], np.int32))
    assert numbers.tolist() == [[[-1, 0, 0, 1], [0, -1, 1, 1]]]
    assert sizes.tolist() == [[[1, 2, 2, 1], [1, 1, 2, 2]]]
    assert words.tolist() == [[[7, 3, -1, -1], [9, 8, -1, -1]]]


def test_the_tiles_of_a_batch() -> None:
    long = make_input([-1, *range(98), -1], [CLS, *[NONE] * 98, SEP], 98)
    short = make_input([-1, 0, 0, -1], [CLS, NONE, NONE, SEP], 1)
    tiles = token_tiles(TokenBatch([long, short]))
    assert tiles.max_tiles == 2 and tiles.n_tiles.tolist() == [2, 1]
    assert tiles.order[1, 0, :5].tolist() == [0, 1, 2, 3, -1]
    assert tiles.word_counts.tolist() == [[TILE_SIZE - 1, 98 - TILE_SIZE + 1], [1, 0]]
