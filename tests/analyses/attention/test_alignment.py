"""Planted heads that follow the tree are found, in the direction in which they follow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.alignment import alignment, edges
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, from_text
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.recording.word_level import to_words, words_of
from bertology.results.shapes import HeadGrid

Floats = planted.Floats


def sentence(text: str, heads: tuple[int, ...], relations: str):
    return replace(from_text(text), heads=heads, relations=tuple(relations.split()))


FIRST = sentence("the old dog sees cats", (2, 2, 3, ROOT, 3), "det amod nsubj root obj")
SECOND = sentence("she was seen today .", (2, 2, ROOT, 2, 2), "nsubj:pass aux:pass root advmod punct")
CORPUS = Corpus((Item((FIRST,)), Item((SECOND,)), Item((FIRST, SECOND), "pair"), Item((from_text("no tree"),))))


def along_tree(entry: planted.Entry, *, up: bool) -> Floats:
    """Every word looks at its head (or a head at its dependents alike); words without an edge at [CLS]."""
    n = len(entry.pieces)
    weights = np.zeros((n, n))
    start = 1
    for part in entry.input.parts:
        for word, head in enumerate(part.heads or ()):
            if head != ROOT:
                weights[(start + word, start + head) if up else (start + head, start + word)] = 1
        start += len(part) + 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


def to_head(entry: planted.Entry) -> Floats:
    return along_tree(entry, up=True)


def to_dependents(entry: planted.Entry) -> Floats:
    return along_tree(entry, up=False)


def recording_of(*heads: planted.HeadMap) -> Recording:
    return planted.recording_of(CORPUS, [list(heads)])


def measured(recording: Recording, relation: str = "", average: str = "pooled") -> HeadGrid:
    derived = recording.with_derived([edges(relation)])
    found = alignment.function(derived, None, relation=relation, average=average, seed=0)
    assert isinstance(found, HeadGrid)
    return found


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_directions_are_told_apart() -> None:
    grid = measured(recording_of(to_head, to_dependents))
    assert value(grid, "dependent to head", 0) == pytest.approx(1)
    assert value(grid, "dependent to head", 1) == pytest.approx(0)
    assert value(grid, "head to dependent", 1) == pytest.approx(1)
    assert value(grid, "either", 0) == value(grid, "either", 1) == pytest.approx(1)
    # Of the ten words of the two trees, in each of two items, two are roots and look at [CLS].
    assert value(grid, "either, of all", 0) == pytest.approx(8 / 10)


def test_only_sentences_with_a_tree_count() -> None:
    assert measured(recording_of(to_head)).measures["either"].n[0, 0] == 3


def test_one_relation_and_its_subtypes() -> None:
    grid = measured(recording_of(to_head), "nsubj")
    assert value(grid, "dependent to head") == pytest.approx(1)
    assert grid.measures["dependent to head"].n[0, 0] == 3
    assert value(measured(recording_of(to_head), "obj"), "dependent to head") == pytest.approx(1)
    with pytest.raises(Refusal, match="amod"):
        measured(recording_of(to_head), "iobj")


def test_neighbours_are_a_baseline() -> None:
    grid = measured(recording_of(planted.uniform))
    previous, following = (grid.baselines[f"{name} word"]["dependent to head"] for name in ("previous", "next"))
    # the, old(next), dog(next), cats(previous); she, was(next), today(previous), . of eight dependents
    assert following.value[0, 0] == pytest.approx(3 / 8)
    assert previous.value[0, 0] == pytest.approx(2 / 8)


def test_uniform_attention_gives_each_word_the_same() -> None:
    grid = measured(recording_of(planted.uniform))
    for name, estimates in grid.measures.items():
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name
    # Alone, a dependent's head is one of five words; in the pair, one of ten words of fifteen of the attention.
    sums = 2 * 4 / 7 + 8 / 13
    totals = 2 * 4 * 5 / 7 + 8 * 10 / 13
    assert value(grid, "dependent to head") == pytest.approx(sums / totals)


def test_it_is_what_a_loop_over_word_maps_says() -> None:
    """Split words: the sum over word-level maps made by the shared conversion."""
    recording = recording_of(planted.noise(6))
    entries = tuple(
        replace(e, pieces=replace(e.pieces, word=np.where(e.pieces.word < 0, -1, e.pieces.word // 2).astype(np.int32)))
        for e in recording.entries
    )
    recording = replace(recording, entries=entries)
    found = recording.with_derived([edges()])[edges()]
    import torch

    from bertology.recording.frame import Frame

    for entry, maps, sums in zip(entries, recording["attention"], found, strict=True):
        words = to_words(torch.from_numpy(maps), words_of(Frame([entry])))[0, 0].numpy()
        expected = np.zeros((2, 3))
        dependents, parents = set[int](), set[int]()
        start = 0
        for part in entry.input.parts:
            for word, head in enumerate(part.heads or ()):
                here, there = start + word, start + head
                if head != ROOT and here in entry.pieces.word and there in entry.pieces.word:
                    expected[0, :2] += words[here, there], words[there, here]
                    dependents.add(here)
                    parents.add(there)
            start += len(part)
        for column, rows in enumerate((dependents, parents, dependents | parents)):
            expected[1, column] = words[sorted(rows)].sum() if rows else 0
        expected[0, 2] = expected[0, :2].sum()
        np.testing.assert_allclose(sums[0, 0, :, :3], expected, atol=1e-6)


def test_relations_are_needed_for_one_relation() -> None:
    bare = Corpus(tuple(Item((replace(part, relations=None),)) for part in (FIRST, SECOND)))
    recording = planted.recording_of(bare, [[planted.uniform]])
    with pytest.raises(Refusal, match="relations"):
        measured(recording, "nsubj")
