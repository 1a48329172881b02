"""The payload: quantised values are within the promised error, and compact."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.views.payload import COARSE_LEVELS, COARSEST_LEVELS, EXACT, FINE_LEVELS, dequantise, quantise


def attention_rows(seed: int, sharpness: float) -> NDArray[np.float32]:
    scores = np.random.default_rng(seed).normal(size=(2, 3, 20, 20)) * sharpness
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("levels", [FINE_LEVELS, COARSE_LEVELS, COARSEST_LEVELS])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 8.0])
def test_every_weight_is_within_1_255th_of_its_rows_largest(levels: int, sharpness: float) -> None:
    weights = attention_rows(1, sharpness)
    error = np.abs(dequantise(quantise(weights, levels=levels)) - weights) / weights.max(-1, keepdims=True)
    assert error.max() <= 1 / 255
    assert error.max() <= 0.5001 / levels


def test_the_largest_weight_of_a_row_is_exact() -> None:
    weights = attention_rows(2, 3.0)
    decoded = dequantise(quantise(weights, levels=COARSEST_LEVELS))
    np.testing.assert_allclose(decoded.max(-1), weights.max(-1), rtol=1e-6)


def test_signs_are_kept() -> None:
    numbers = np.random.default_rng(3).normal(size=(1, 2, 5, 7)).astype(np.float32)
    quantised = quantise(numbers, levels=FINE_LEVELS)
    assert quantised.signed
    np.testing.assert_allclose(dequantise(quantised), numbers, atol=np.abs(numbers).max() / FINE_LEVELS)


@pytest.mark.parametrize("sharpness", [0.0, 8.0])
def test_weights_of_up_to_128_tokens_are_exact(sharpness: float) -> None:
    scores = np.random.default_rng(6).normal(size=(1, 2, 128, 128)) * sharpness
    weights = np.exp(scores).astype(np.float32) * np.where(scores > 1, -1, 1).astype(np.float32)
    quantised = quantise(weights)
    assert (quantised.levels, quantised.bytes) == (EXACT, 4)
    np.testing.assert_array_equal(dequantise(quantised), weights)
    assert quantise(np.ones((1, 1, 129, 129), np.float32)).levels == FINE_LEVELS


@pytest.mark.parametrize("levels", [EXACT, COARSEST_LEVELS])
@pytest.mark.parametrize("sign", [1, -1])
def test_zeros_remain_zeros(sign: int, levels: int) -> None:
    numbers = np.zeros((1, 1, 3, 3), np.float32)
    numbers[0, 0, 0] = sign
    np.testing.assert_array_equal(dequantise(quantise(numbers, levels=levels)), numbers)


def test_nan_is_refused() -> None:
    with pytest.raises(Refusal, match="NaN"):
        quantise(np.full((1, 1, 2, 2), np.nan, np.float32))


def test_coarse_values_take_one_byte() -> None:
    assert quantise(attention_rows(4, 1.0), levels=FINE_LEVELS).bytes == 2
    assert (
        quantise(attention_rows(4, 1.0), levels=COARSE_LEVELS).bytes
        == quantise(attention_rows(4, 1.0), levels=COARSEST_LEVELS).bytes
        == 1
    )


def test_long_inputs_are_compact() -> None:
    """Rows of real heads hold a few bits per weight, noise of this sharpness about as many."""
    quantised = quantise(np.tile(attention_rows(5, 2.0), (1, 1, 13, 13))[:1, :1, :256, :256], levels=COARSEST_LEVELS)
    assert len(quantised.chunks[0]) < 256 * 256 * 1.2
