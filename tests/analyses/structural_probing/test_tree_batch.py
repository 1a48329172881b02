"""Sentences of a batch are concatenated, and row indices map their nodes to tables and back."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from bertology.analyses.structural_probing.tree_batch import TABLE_MULTIPLE, TreeBatch, pack_trees, select_layers

SIZES = (3, 6, 1, 5)


def make_batch() -> TreeBatch:
    generator = torch.Generator().manual_seed(1)
    states = [torch.randn(2, size, 7, generator=generator) for size in SIZES]
    distances = [torch.rand(size, size, generator=generator) for size in SIZES]
    depths = [torch.rand(size, generator=generator) for size in SIZES]
    return TreeBatch(torch.cat(states, 1), pack_trees(distances, depths))


def test_sentences_are_unpacked_as_they_were_packed() -> None:
    generator = torch.Generator().manual_seed(1)
    sentences = make_batch().sentences()
    assert tuple(len(sentence.depths) for sentence in sentences) == SIZES
    for sentence, size in zip(sentences, SIZES, strict=True):
        assert_close(sentence.states, torch.randn(2, size, 7, generator=generator))
    for sentence, size in zip(sentences, SIZES, strict=True):
        assert_close(sentence.distances, torch.rand(size, size, generator=generator))


def test_rows_map_nodes_to_tables_and_back() -> None:
    trees = make_batch().trees
    assert trees.distances.shape == (len(SIZES), 8, 8)
    assert trees.distances.shape[1] % TABLE_MULTIPLE == 0
    for count in (1, 3):
        values = torch.arange(sum(SIZES) * count)
        tables = values[trees.rows_by_slot(count)].view(count, len(SIZES), 8)
        start = 0
        for row, size in enumerate(SIZES):
            assert torch.equal(tables[:, row, :size], values.view(-1, count)[start : start + size].T)
            start += size
        assert torch.equal(tables.flatten()[trees.rows_by_node(count)], values)


def test_rows_of_selected_probes_map_to_tables() -> None:
    trees = make_batch().trees
    values = torch.arange(sum(SIZES) * 5)
    tables = values[trees.rows_by_slot(2, 1, 5)].view(2, len(SIZES), 8)
    start = 0
    for row, size in enumerate(SIZES):
        assert torch.equal(tables[:, row, :size], values.view(-1, 5)[start : start + size, 1:3].T)
        start += size


def test_every_sentence_has_the_same_weight() -> None:
    trees = make_batch().trees
    assert_close(trees.pair_weights.sum((1, 2)), torch.ones(len(SIZES)))
    assert_close(torch.stack([weights.sum() for weights in trees.node_weights.split(SIZES)]), torch.ones(len(SIZES)))
    for row, size in enumerate(SIZES):
        assert not trees.pair_weights[row, size:].any()
        assert not trees.pair_weights[row, :, size:].any()


def test_layers_of_a_batch_can_be_selected() -> None:
    batch = make_batch()
    assert_close(batch.select_layers([1]).states, batch.states[1:])
    assert batch.select_layers([0, 1]) is batch
    assert batch.select_layers([1]).trees is batch.trees


def test_adjacent_layers_are_not_copied() -> None:
    batch = TreeBatch(torch.arange(4 * 15 * 2.0).view(4, 15, 2), make_batch().trees)
    for layers in ([1, 2], [3], [0, 2], [0, 1, 3]):
        selected = batch.select_layers(layers)
        assert_close(selected.states, batch.states[layers])
        is_view = selected.states.untyped_storage().data_ptr() == batch.states.untyped_storage().data_ptr()
        assert is_view == (layers[-1] - layers[0] == len(layers) - 1)


def test_layers_of_several_batches_can_be_selected() -> None:
    batches = select_layers([make_batch(), make_batch()], [1])
    assert len(batches) == 2
    for batch in batches:
        assert_close(batch.states, make_batch().states[1:])
