"""Pooling against a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import models
from bertology.corpus.corpus import Input
from bertology.corpus.sentence import sentence
from bertology.encoder.pieces import Pieces
from bertology.encoder.pooling import Pooling, pool

WAYS: tuple[Pooling, ...] = get_args(Pooling)
BY_LOOP: dict[Pooling, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "mean": lambda rows: rows.mean(0),
    "max": lambda rows: rows.max(0),
    "sum": lambda rows: rows.sum(0),
}


def _pieces(word: list[int], words: int) -> Pieces:
    nothing = np.zeros(len(word), np.int32)
    return Pieces(nothing, ("x",) * len(word), nothing, nothing, np.asarray(word, np.int32), nothing, words)


@pytest.mark.parametrize("how", WAYS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(word=st.lists(st.integers(-1, 6), max_size=15), seed=st.integers(0, 99))
def test_pooling_is_that_of_a_loop(how: Pooling, word: list[int], seed: int) -> None:
    """Also where a word's pieces are not together, and where there are no pieces at all."""
    values: NDArray[np.float32] = np.random.default_rng(seed).normal(size=(3, len(word), 4)).astype(np.float32)
    pooled = pool(values, _pieces(word, 7), how)
    assert pooled.values.shape == (3, 7, 4)
    assert pooled.values.dtype == np.float32
    assert pooled.vanished == tuple(w for w in range(7) if w not in word)
    for layer in range(3):
        for w in range(7):
            rows = values[layer, [place for place, owner in enumerate(word) if owner == w]]
            expected = BY_LOOP[how](rows) if len(rows) else np.full(4, np.nan)
            np.testing.assert_allclose(pooled.values[layer, w], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", WAYS)
def test_halves_do_not_overflow(how: Pooling) -> None:
    values = np.full((4, 2), 40_000, np.float16)
    pooled = pool(values, _pieces([0, 0, 1, -1], 2), how)
    expected = [[80_000] * 2 if how == "sum" else [40_000] * 2, [40_000] * 2]
    np.testing.assert_allclose(pooled.values, expected, rtol=1e-3)


def test_a_word_that_vanished_is_a_row_of_nothing() -> None:
    shown = Input((sentence(["It", "\u200b", "rains", "."]),))
    (pieces,) = models.encoder("bert").tokenise([shown])
    pooled = pool(np.ones((len(pieces), 5)), pieces)
    assert pooled.vanished == pieces.vanished == (1,)
    assert np.isnan(pooled.values[1]).all()
    np.testing.assert_array_equal(pooled.values[[0, 2, 3]], np.ones((3, 5)))
