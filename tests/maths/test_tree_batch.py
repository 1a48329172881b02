"""Sentences of a batch lie one after the other, and rows lead from their points to tables and back."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from bertology.maths.tree_batch import SIDE, TreeBatch, of_layers, trees_of

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


def test_rows_of_some_probes_among_others_lead_to_tables() -> None:
    trees = batch().trees
    values = torch.arange(sum(SIZES) * 5)
    tables = values[trees.by_slot(2, 1, 5)].view(2, len(SIZES), 8)
    start = 0
    for row, size in enumerate(SIZES):
        assert torch.equal(tables[:, row, :size], values.view(-1, 5)[start : start + size, 1:3].T)
        start += size


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


def test_layers_side_by_side_are_not_copied() -> None:
    whole = TreeBatch(torch.arange(4 * 15 * 2.0).view(4, 15, 2), batch().trees)
    for chosen in ([1, 2], [3], [0, 2], [0, 1, 3]):
        found = whole.of_layers(chosen)
        assert_close(found.states, whole.states[chosen])
        shared = found.states.untyped_storage().data_ptr() == whole.states.untyped_storage().data_ptr()
        assert shared == (chosen[-1] - chosen[0] == len(chosen) - 1)


def test_batches_of_some_layers() -> None:
    found = of_layers([batch(), batch()], [1])
    assert len(found) == 2
    for one in found:
        assert_close(one.states, batch().states[1:])
