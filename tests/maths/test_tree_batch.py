"""Sentences of a batch lie one after the other, and rows lead from their points to tables and back."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from bertology.maths.tree_batch import SIDE, TreeBatch, trees_of

SIZES = (3, 6, 1, 5)


def batch() -> TreeBatch:
    generator = torch.Generator().manual_seed(1)
    states = [torch.randn(2, size, 7, generator=generator) for size in SIZES]
    distances = [torch.rand(size, size, generator=generator) for size in SIZES]
    depths = [torch.rand(size, generator=generator) for size in SIZES]
    return TreeBatch(torch.cat(states, 1), trees_of(distances, depths))


def test_sentences_come_out_as_they_went_in() -> None:
    generator = torch.Generator().manual_seed(1)
    found = batch().sentences()
    assert tuple(len(sentence.depths) for sentence in found) == SIZES
    for sentence, size in zip(found, SIZES, strict=True):
        assert_close(sentence.states, torch.randn(2, size, 7, generator=generator))
    for sentence, size in zip(found, SIZES, strict=True):
        assert_close(sentence.distances, torch.rand(size, size, generator=generator))


def test_rows_lead_to_tables_and_back() -> None:
    trees = batch().trees
    assert trees.distances.shape == (len(SIZES), 8, 8)
    assert trees.distances.shape[1] % SIDE == 0
    for count in (1, 3):
        values = torch.arange(sum(SIZES) * count)
        tables = values[trees.by_slot(count)].view(count, len(SIZES), 8)
        start = 0
        for row, size in enumerate(SIZES):
            own = values.view(-1, count)[start : start + size].T
            assert torch.equal(tables[:, row, :size], own)
            start += size
        assert torch.equal(tables.flatten()[trees.by_point(count)], values)


def test_every_sentence_counts_the_same() -> None:
    trees = batch().trees
    assert_close(trees.of_pairs.sum((1, 2)), torch.ones(len(SIZES)))
    assert_close(torch.stack([own.sum() for own in trees.of_points.split(SIZES)]), torch.ones(len(SIZES)))
    for row, size in enumerate(SIZES):
        assert not trees.of_pairs[row, size:].any()
        assert not trees.of_pairs[row, :, size:].any()


def test_some_layers_of_a_batch() -> None:
    whole = batch()
    assert_close(whole.of_layers([1]).states, whole.states[1:])
    assert whole.of_layers([0, 1]) is whole
    assert whole.of_layers([1]).trees is whole.trees
