"""Sums and best paths are those of every path written out."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from bertology.maths.conditional_random_field import best_paths, log_partition, path_score

TAGS = 3
LENGTHS = (4, 1, 2)


@pytest.fixture
def given() -> tuple[Tensor, Tensor, Tensor]:
    """Two fields over three sequences of different lengths, in double precision."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, len(LENGTHS), max(LENGTHS), TAGS, generator=generator, dtype=torch.float64)
    moves = torch.randn(2, 1, TAGS + 1, TAGS + 1, generator=generator, dtype=torch.float64)
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return scores, moves, real.expand(2, -1, -1)


def by_hand(scores: Tensor, moves: Tensor, path: tuple[int, ...]) -> float:
    got = moves[TAGS, path[0]] + moves[path[-1], TAGS]
    for step, tag in enumerate(path):
        got = got + scores[step, tag] + (moves[path[step - 1], tag] if step else 0)
    return float(got)


def test_against_every_path(given: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, moves, real = given
    sums, best = log_partition(scores, moves, real), best_paths(scores, moves, real)
    for field, (row, length) in product(range(2), enumerate(LENGTHS)):
        paths = list(product(range(TAGS), repeat=length))
        got = [by_hand(scores[field, row], moves[field, 0], path) for path in paths]
        torch.testing.assert_close(sums[field, row], torch.tensor(got, dtype=torch.float64).logsumexp(0))
        assert tuple(best[field, row, :length].tolist()) == paths[max(range(len(paths)), key=got.__getitem__)]
        assert not best[field, row, length:].any()
        for path, expected in zip(paths, got, strict=True):
            tags = torch.zeros(2, len(LENGTHS), max(LENGTHS), dtype=torch.long)
            tags[field, row, :length] = torch.tensor(path)
            assert float(path_score(scores, moves, real, tags)[field, row]) == pytest.approx(expected)


def test_padding_changes_nothing(given: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, moves, real = given
    other = torch.where(real[..., None], scores, 100.0)
    torch.testing.assert_close(log_partition(other, moves, real), log_partition(scores, moves, real))
    assert (best_paths(other, moves, real) == best_paths(scores, moves, real)).all()


def test_the_gradient_is_the_chance_of_each_tag(given: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, moves, real = given
    leaf = scores.clone().requires_grad_()
    log_partition(leaf, moves, real).sum().backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad.sum(-1), real.double())
