"""What a page is given: numbers in steps of their row's largest, within what was promised; types that never drift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.views.payload import COARSE, COARSEST, FINE, coded, decoded
from bertology.views.typescript import typescript

ROOT = Path(__file__).parents[2]


def rows(seed: int, sharpness: float) -> NDArray[np.float32]:
    scores = np.random.default_rng(seed).normal(size=(2, 3, 20, 20)) * sharpness
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("levels", [FINE, COARSE, COARSEST])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 8.0])
def test_every_weight_is_within_1_255th_of_its_rows_largest(levels: int, sharpness: float) -> None:
    weights = rows(1, sharpness)
    error = np.abs(decoded(coded(weights, levels=levels)) - weights) / weights.max(-1, keepdims=True)
    assert error.max() <= 1 / 255
    assert error.max() <= 0.5001 / levels


def test_the_largest_weight_of_a_row_is_exact() -> None:
    weights = rows(2, 3.0)
    found = decoded(coded(weights, levels=COARSEST))
    np.testing.assert_allclose(found.max(-1), weights.max(-1), rtol=1e-6)


def test_signs_are_kept() -> None:
    numbers = np.random.default_rng(3).normal(size=(1, 2, 5, 7)).astype(np.float32)
    made = coded(numbers)
    assert made.signed
    np.testing.assert_allclose(decoded(made), numbers, atol=np.abs(numbers).max() / FINE)


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_of_nothing_stay_nothing(sign: int) -> None:
    numbers = np.zeros((1, 1, 3, 3), np.float32)
    numbers[0, 0, 0] = sign
    np.testing.assert_array_equal(decoded(coded(numbers)), numbers)


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(Refusal, match="NaN"):
        coded(np.full((1, 1, 2, 2), np.nan, np.float32))


def test_many_numbers_take_one_byte_each() -> None:
    assert coded(rows(4, 1.0)).bytes == 2
    assert coded(rows(4, 1.0), levels=COARSE).bytes == coded(rows(4, 1.0), levels=COARSEST).bytes == 1


def test_long_inputs_are_small() -> None:
    """512 pieces: the rows of real heads hold a few bits a weight, noise of this sharpness about as many."""
    few = coded(np.tile(rows(5, 2.0), (1, 1, 13, 13))[:1, :1, :256, :256], levels=COARSEST)
    assert len(few.chunks[0]) < 256 * 256 * 1.2


def test_the_types_of_the_front_end_are_those_of_the_schema() -> None:
    assert (ROOT / "frontend" / "src" / "payload.ts").read_text("utf-8") == typescript()
