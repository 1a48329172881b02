"""Tree datasets: punctuation, selected and extra layers, and batches with cached or gathered states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import planted
import planted_trees
from bertology.analyses.structural_probing import dataset as dataset_module
from bertology.analyses.structural_probing.dataset import (
    TreeBatches,
    TreeDataset,
    gold_edges,
    scored_word_mask,
    tree_dataset,
)
from bertology.analyses.structural_probing.training import StructuralProbeConfig
from bertology.corpus.corpus import corpus_from_sentences
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal

CORPUS = planted_trees.short_sentences()


@pytest.fixture(scope="module")
def dataset() -> TreeDataset:
    recording = planted_trees.make_recording(CORPUS, planted_trees.noise_states, planted_trees.mapped_states)
    return tree_dataset(recording.with_sites([planted_trees.SITE]), range(len(recording)))


def make_tree(
    words: str, governors: tuple[int, ...], xpos: tuple[str, ...] | None = None, **annotations: Any
) -> Sentence:
    relations = tuple("root" if governor == ROOT else "dep" for governor in governors)
    sentence = sentence_from_words(words.split())
    return replace(sentence, governors=governors, relations=relations, xpos=xpos, **annotations)


def to_input(sentence: Sentence) -> RecordedInput:
    return planted.recorded_inputs(corpus_from_sentences([sentence], name="one sentence"))[0]


def test_punctuation_that_governs_words_is_bridged() -> None:
    # a <- , -> b: without the comma, a and b are two steps apart and are joined by a shortest link.
    recorded = to_input(make_tree("a , b c", (1, 3, 1, ROOT), pos=("X", "PUNCT", "X", "X")))
    is_scored = scored_word_mask(recorded, legacy=False)
    assert is_scored.tolist() == [True, False, True, True]
    assert gold_edges(recorded, is_scored).tolist() in ([[0, 1], [0, 2]], [[0, 1], [1, 2]])


def test_punctuation_is_identified_by_upos_else_xpos_else_relation() -> None:
    def mask(sentence: Sentence, *, legacy: bool = False) -> list[bool]:
        return scored_word_mask(to_input(sentence), legacy=legacy).tolist()

    sentence = make_tree("-LRB- $ , x", (3, 3, 3, ROOT), ("-LRB-", "$", ",", "NN"), pos=("PUNCT", "SYM", "PUNCT", "X"))
    expected = [False, True, False, True]
    assert mask(sentence) == expected
    assert mask(sentence, legacy=True) == expected
    assert mask(replace(sentence, pos=None)) == expected
    hyphen = make_tree("a - b", (2, 2, ROOT), ("NN", "HYPH", "NN"), pos=("X", "PUNCT", "X"))
    assert mask(hyphen) == [True, False, True]
    assert mask(hyphen, legacy=True) == [True, True, True]
    untagged = replace(sentence, pos=None, xpos=None, relations=("punct", "dep", "punct", "root"))
    assert mask(untagged) == expected
    with pytest.raises(Refusal, match="XPOS"):
        mask(untagged, legacy=True)


def test_a_skipped_sentence_keeps_its_row() -> None:
    """Two datasets of the same sentences have the same rows, whichever of them each one skips."""

    def rows_by_words(sentences: list[Sentence]) -> tuple[dict[tuple[str, ...], int], int]:
        recording = planted_trees.make_recording(corpus_from_sentences(sentences), planted_trees.noise_states)
        dataset = tree_dataset(recording.with_sites([planted_trees.SITE]), range(len(recording)))
        half = dataset.subset(range(0, len(dataset.inputs), 2))
        assert half.rows == dataset.rows[::2] and half.n_rows == dataset.n_rows
        words = [recorded_input.text.words for recorded_input in dataset.inputs]
        return dict(zip(words, dataset.rows, strict=True)), dataset.n_rows

    every = [example.segments[0] for example in CORPUS.examples[:30]]
    fewer = [replace(s, governors=None, relations=None) if index in (3, 17) else s for index, s in enumerate(every)]
    rows, n_rows = rows_by_words(every)
    rows_of_fewer, n_rows_of_fewer = rows_by_words(fewer)
    assert n_rows == n_rows_of_fewer == 30 and sorted(rows.values()) == list(range(30))
    assert rows_of_fewer == {
        words: row for words, row in rows.items() if words not in (every[3].words, every[17].words)
    }


def test_layers_can_be_selected_before_and_after_extra_layers_are_added(dataset: TreeDataset) -> None:
    states = dataset.states
    extra = [10 + layers[:2] for layers in states]
    extended = states.select_layers([1]).with_extra_layers(extra)
    np.testing.assert_array_equal(extended[3], np.concatenate([states[3][1:2], extra[3]]))
    np.testing.assert_array_equal(extended.select_layers([2, 0])[3], np.stack([extra[3][1], states[3][1]]))
    np.testing.assert_array_equal(extended.subset([5, 3]).select_layers([1])[1], extra[3][:1])
    np.testing.assert_array_equal(extended.select_layers([2, 0]).select_layers([1])[3], states[3][1:2])


def test_batches_are_the_same_with_cached_and_with_gathered_states(
    dataset: TreeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = TreeBatches(dataset, 7, "cpu")
    monkeypatch.setattr(dataset_module, "MAX_CACHED_BYTES", 0)
    gathered = TreeBatches(dataset, 7, "cpu")
    assert cached[0].states is cached[0].states
    assert gathered[0].states is not gathered[0].states
    assert gathered[0].trees is gathered[0].trees
    assert sorted(size for batch in gathered for size in batch.trees.sizes) == sorted(dataset.lengths)
    for left, right in zip(cached, gathered, strict=True):
        torch.testing.assert_close(left.states, right.states, rtol=0, atol=0)


def test_single_layers_are_cached_if_all_layers_are_too_large(
    dataset: TreeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra_layers = [10 + states[:1] for states in dataset.states]
    dataset = replace(dataset, states=dataset.states.with_extra_layers(extra_layers))
    n_layers = len(dataset.states[0])
    cached = TreeBatches(dataset, 7, "cpu")
    assert cached.select_layers([1])[0].states.data_ptr() == cached[0].states[1].data_ptr()
    monkeypatch.setattr(dataset_module, "MAX_CACHED_BYTES", 4 * sum(dataset.lengths) * planted_trees.WIDTH)
    large = TreeBatches(dataset, 7, "cpu")
    assert large[0].states is not large[0].states
    for layers in [*([layer] for layer in range(n_layers)), [0, n_layers - 1]]:
        selected = large.select_layers(layers)
        assert (selected[0].states is selected[0].states) == (len(layers) == 1)
        assert selected[0].trees is large[0].trees
        for batch, expected in zip(selected, cached, strict=True):
            torch.testing.assert_close(batch.states, expected.states[layers], rtol=0, atol=0)


def test_probes_do_not_depend_on_the_cache(dataset: TreeDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = StructuralProbeConfig(epochs=6, batch_size=5)
    together = config.fit(dataset, ("distance", "depth"), [3], [0, 1])
    monkeypatch.setattr(dataset_module, "MAX_CACHED_BYTES", 4 * sum(dataset.lengths) * planted_trees.WIDTH)
    alone = config.fit(dataset, ("distance", "depth"), [3], [0, 1])
    # The memory layout of states may change the last digit of a product.
    torch.testing.assert_close(together.weights, alone.weights, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(together.losses, alone.losses)
    assert torch.equal(together.epochs, alone.epochs)
