"""Partition function and best path equal those from enumerating all paths."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from bertology.analyses.frozen_features.crf import log_partition, path_score, viterbi

TAGS = 3
LENGTHS = (4, 1, 2)


@pytest.fixture
def fields() -> tuple[Tensor, Tensor, Tensor]:
    """Two CRFs on three sequences of different lengths, in double precision."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, len(LENGTHS), max(LENGTHS), TAGS, generator=generator, dtype=torch.float64)
    transitions = torch.randn(2, 1, TAGS + 1, TAGS + 1, generator=generator, dtype=torch.float64)
    step_mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return scores, transitions, step_mask.expand(2, -1, -1)


def explicit_path_score(scores: Tensor, transitions: Tensor, path: tuple[int, ...]) -> float:
    score = transitions[TAGS, path[0]] + transitions[path[-1], TAGS]
    for step, tag in enumerate(path):
        score = score + scores[step, tag] + (transitions[path[step - 1], tag] if step else 0)
    return float(score)


def test_partition_and_viterbi_equal_enumeration(fields: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, transitions, step_mask = fields
    sums, best = log_partition(scores, transitions, step_mask), viterbi(scores, transitions, step_mask)
    for field, (row, length) in product(range(2), enumerate(LENGTHS)):
        paths = list(product(range(TAGS), repeat=length))
        path_scores = [explicit_path_score(scores[field, row], transitions[field, 0], path) for path in paths]
        torch.testing.assert_close(sums[field, row], torch.tensor(path_scores, dtype=torch.float64).logsumexp(0))
        assert tuple(best[field, row, :length].tolist()) == paths[max(range(len(paths)), key=path_scores.__getitem__)]
        assert not best[field, row, length:].any()
        for path, expected in zip(paths, path_scores, strict=True):
            tags = torch.zeros(2, len(LENGTHS), max(LENGTHS), dtype=torch.long)
            tags[field, row, :length] = torch.tensor(path)
            assert float(path_score(scores, transitions, step_mask, tags)[field, row]) == pytest.approx(expected)


def test_padding_has_no_effect(fields: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, transitions, step_mask = fields
    padded = torch.where(step_mask[..., None], scores, 100.0)
    torch.testing.assert_close(
        log_partition(padded, transitions, step_mask), log_partition(scores, transitions, step_mask)
    )
    assert (viterbi(padded, transitions, step_mask) == viterbi(scores, transitions, step_mask)).all()


def test_gradient_of_log_partition_sums_to_one_over_tags(fields: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, transitions, step_mask = fields
    leaf = scores.clone().requires_grad_()
    log_partition(leaf, transitions, step_mask).sum().backward()
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad.sum(-1), step_mask.double())
