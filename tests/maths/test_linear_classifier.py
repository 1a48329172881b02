"""All problems end at their own optimum, wherever they start and however the classes are written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bertology.maths.linear_classifier import UNUSED, LinearProblems
from bertology.maths.minimiser import End

EXACT = End(300, 1e-6)


def examples(classes: int, problems: int) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """Features of two groups, and labels of problems that each leave out some others."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 60, 5)).astype(np.float32)
    gold = (x[0] @ generator.normal(size=(5, classes)) + generator.gumbel(size=(60, classes))).argmax(1)
    left_out = generator.random((problems, 60)) < 0.15
    return torch.from_numpy(x), np.where(left_out, UNUSED, gold)


def losses(
    x: torch.Tensor, labels: NDArray[np.int64], found: torch.Tensor, classes: int, penalty: float
) -> torch.Tensor:
    """(group, problem) the penalised mean cross-entropy by PyTorch's own."""
    weights, bias = found[..., :-classes].unflatten(-1, (classes, -1)).double(), found[..., -classes:].double()
    scores = x.double()[:, None] @ weights.transpose(-1, -2) + bias[:, :, None]
    gold = torch.from_numpy(labels).expand(len(x), -1, -1)
    each = torch.nn.functional.cross_entropy(
        scores.flatten(0, 2), gold.flatten(), ignore_index=UNUSED, reduction="none"
    )
    used = torch.from_numpy((labels != UNUSED).sum(1))
    return each.view(gold.shape).sum(-1) / used + penalty / 2 * weights.square().sum((2, 3))


@pytest.mark.parametrize("classes", [2, 3, 8])
def test_no_other_weights_are_better(classes: int) -> None:
    x, labels = examples(classes, 3)
    found = LinearProblems(x, classes, (0.05,)).solved(labels, EXACT)
    best = losses(x, labels, found, classes, 0.05)
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        other = found + 0.03 * torch.randn(found.shape, generator=generator)
        assert (losses(x, labels, other, classes, 0.05) > best).all()
