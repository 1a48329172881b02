"""Planted heads that follow the tree are found, in the direction in which they follow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.dependency_alignment import dependency_alignment, edge_attention_site
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.sentence import ROOT, sentence_from_text
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid
from bertology.statistics.words import word_attention, word_slots

Floats = planted.FloatArray


def sentence(text: str, heads: tuple[int, ...], relations: str):
    return replace(sentence_from_text(text), governors=heads, relations=tuple(relations.split()))


FIRST = sentence("the old dog sees cats", (2, 2, 3, ROOT, 3), "det amod nsubj root obj")
SECOND = sentence("she was seen today .", (2, 2, ROOT, 2, 2), "nsubj:pass aux:pass root advmod punct")
CORPUS = Corpus(
    (Example((FIRST,)), Example((SECOND,)), Example((FIRST, SECOND), "pair"), Example((sentence_from_text("no tree"),)))
)


def along_tree(recorded_input: planted.RecordedInput, *, up: bool) -> Floats:
    """Every word attends to its governor (or every governor to its dependents); other words to [CLS]."""
    n = len(recorded_input.tokens)
    weights = np.zeros((n, n))
    start = 1
    for part in recorded_input.text.segments:
        for word, head in enumerate(part.governors or ()):
            if head != ROOT:
                weights[(start + word, start + head) if up else (start + head, start + word)] = 1
        start += len(part) + 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


def to_governor(recorded_input: planted.RecordedInput) -> Floats:
    return along_tree(recorded_input, up=True)


def to_dependents(recorded_input: planted.RecordedInput) -> Floats:
    return along_tree(recorded_input, up=False)


def recording_of(*heads: planted.HeadAttention) -> Recording:
    return planted.make_recording(CORPUS, [list(heads)])


def measured(recording: Recording, relation: str = "", average: str = "micro") -> HeadGrid:
    derived = recording.with_sites([edge_attention_site(relation)])
    result = dependency_alignment.function(derived, None, relation=relation, average=average, seed=0)
    assert isinstance(result, HeadGrid)
    return result


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_directions_are_measured_separately() -> None:
    grid = measured(recording_of(to_governor, to_dependents))
    assert value(grid, "dependent to governor", 0) == pytest.approx(1)
    assert value(grid, "dependent to governor", 1) == pytest.approx(0)
    assert value(grid, "governor to dependent", 1) == pytest.approx(1)
    assert value(grid, "both directions", 0) == value(grid, "both directions", 1) == pytest.approx(1)
    # Two of the ten words of both trees are roots and attend to [CLS].
    assert value(grid, "both directions (of all attention)", 0) == pytest.approx(8 / 10)


def test_only_sentences_with_a_tree_count() -> None:
    assert measured(recording_of(to_governor)).measures["both directions"].n[0, 0] == 3


def test_one_relation_and_its_subtypes() -> None:
    grid = measured(recording_of(to_governor), "nsubj")
    assert value(grid, "dependent to governor") == pytest.approx(1)
    assert grid.measures["dependent to governor"].n[0, 0] == 3
    assert value(measured(recording_of(to_governor), "obj"), "dependent to governor") == pytest.approx(1)
    with pytest.raises(Refusal, match="amod"):
        measured(recording_of(to_governor), "iobj")


def test_neighbours_are_a_baseline() -> None:
    grid = measured(recording_of(planted.uniform_head))
    previous, following = (
        grid.baselines[f"always {name} word"]["dependent to governor"] for name in ("previous", "next")
    )
    # the, old(next), dog(next), cats(previous); she, was(next), today(previous), . of eight dependents
    assert following.value[0, 0] == pytest.approx(3 / 8)
    assert previous.value[0, 0] == pytest.approx(2 / 8)


def test_uniform_attention_has_equal_shares_of_words() -> None:
    grid = measured(recording_of(planted.uniform_head))
    for name, estimates in grid.measures.items():
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name
    # In a single sentence the governor is one of five words, in the pair one of ten.
    sums = 2 * 4 / 7 + 8 / 13
    totals = 2 * 4 * 5 / 7 + 8 * 10 / 13
    assert value(grid, "dependent to governor") == pytest.approx(sums / totals)


def test_alignment_equals_a_loop_over_word_attention() -> None:
    """Parity with sums over word attention, with words of two tokens."""
    recording = recording_of(planted.random_head(6))
    recorded_inputs = tuple(
        replace(
            e,
            tokens=replace(
                e.tokens, word_ids=np.where(e.tokens.word_ids < 0, -1, e.tokens.word_ids // 2).astype(np.int32)
            ),
        )
        for e in recording.inputs
    )
    recording = replace(recording, inputs=recorded_inputs)
    result = recording.with_sites([edge_attention_site()])[edge_attention_site()]
    import torch

    from bertology.encoder.token_batch import TokenBatch

    for recorded_input, maps, sums in zip(recorded_inputs, recording["attention"], result, strict=True):
        words = word_attention(torch.from_numpy(maps), word_slots(TokenBatch([recorded_input])))[0, 0].numpy()
        expected = np.zeros((2, 3))
        dependents, parents = set[int](), set[int]()
        start = 0
        for part in recorded_input.text.segments:
            for word, head in enumerate(part.governors or ()):
                here, there = start + word, start + head
                if head != ROOT and here in recorded_input.tokens.word_ids and there in recorded_input.tokens.word_ids:
                    expected[0, :2] += words[here, there], words[there, here]
                    dependents.add(here)
                    parents.add(there)
            start += len(part)
        for column, rows in enumerate((dependents, parents, dependents | parents)):
            expected[1, column] = words[sorted(rows)].sum() if rows else 0
        expected[0, 2] = expected[0, :2].sum()
        np.testing.assert_allclose(sums[0, 0, :, :3], expected, atol=1e-6)


def test_relations_are_needed_for_one_relation() -> None:
    bare = Corpus(tuple(Example((replace(part, relations=None),)) for part in (FIRST, SECOND)))
    recording = planted.make_recording(bare, [[planted.uniform_head]])
    with pytest.raises(Refusal, match="relations"):
        measured(recording, "nsubj")
