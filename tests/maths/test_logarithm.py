"""The logarithm is torch's, wherever it is taken."""

from __future__ import annotations

import torch

from bertology.maths.logarithm import log2_in_place


def test_it_is_the_logarithm() -> None:
    values = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(0)).clamp(min=torch.finfo(torch.float32).tiny)
    expected = values.log2()
    found = log2_in_place(values)
    assert found is values
    torch.testing.assert_close(found, expected)


def test_extremes_and_slices() -> None:
    tiny = torch.finfo(torch.float32).tiny
    values = torch.tensor([[1.0, tiny], [0.5, 2.0]])
    log2_in_place(values[:, 1:])
    torch.testing.assert_close(values, torch.tensor([[1.0, -126.0], [0.5, 1.0]]))
