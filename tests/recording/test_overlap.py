"""Overlapped batches give the results of single ones, in order; on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bertology.recording.overlap import overlap_batches

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def _prepare(batch: int) -> torch.Tensor:
    if batch < 0:
        raise ValueError("a batch that cannot be prepared")
    return torch.full((1000, 1000), float(batch), device="cuda")


def _run(batch: int, prepared: torch.Tensor) -> Callable[[], float]:
    product = prepared @ prepared
    return lambda: float(product[0, 0] + 0 * prepared[0, 0])


def test_results_come_in_order() -> None:
    results = list(overlap_batches(range(20), _prepare, _run, "cuda"))
    assert results == [(batch, 1000.0 * batch * batch) for batch in range(20)]


def test_an_error_of_the_preparation_reaches_the_caller() -> None:
    results = overlap_batches([1, 2, -1], _prepare, _run, "cuda")
    assert next(results) == (1, 1000.0)
    with pytest.raises(ValueError, match="cannot be prepared"):
        list(results)
