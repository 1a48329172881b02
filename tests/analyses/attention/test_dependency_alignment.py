"""Planted heads that attend along the dependency tree score highest in the direction planted."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

import planted
from bertology.analyses.attention.dependency_alignment import dependency_alignment, edge_attention_site
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_text
from bertology.corpus.tagsets import Subtypes
from bertology.encoder.token_batch import TokenBatch
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid
from bertology.statistics.words import word_attention, word_slots

Floats = planted.FloatArray


def sentence(text: str, governors: tuple[int, ...], relations: str) -> Sentence:
    return replace(sentence_from_text(text), governors=governors, relations=tuple(relations.split()))


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
    for sentence in recorded_input.text.segments:
        for word, governor in enumerate(sentence.governors or ()):
            if governor != ROOT:
                weights[(start + word, start + governor) if up else (start + governor, start + word)] = 1
        start += len(sentence) + 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


def to_governor(recorded_input: planted.RecordedInput) -> Floats:
    return along_tree(recorded_input, up=True)


def to_dependents(recorded_input: planted.RecordedInput) -> Floats:
    return along_tree(recorded_input, up=False)


def recording_of(*heads: planted.HeadAttention) -> Recording:
    return planted.make_recording(CORPUS, [list(heads)])


def measure(
    recording: Recording, relation: str = "", average: str = "micro", subtypes: Subtypes = "included"
) -> HeadGrid:
    with_site = recording.with_sites([edge_attention_site(relation, subtypes)])
    result = dependency_alignment(with_site, None, relation=relation, average=average, subtypes=subtypes, seed=0)
    assert isinstance(result, HeadGrid)
    return result


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_directions_are_measured_separately() -> None:
    grid = measure(recording_of(to_governor, to_dependents))
    assert value(grid, "dependent to governor", 0) == pytest.approx(1)
    assert value(grid, "dependent to governor", 1) == pytest.approx(0)
    assert value(grid, "governor to dependent", 1) == pytest.approx(1)
    assert value(grid, "both directions", 0) == value(grid, "both directions", 1) == pytest.approx(1)
    # Two of the ten words of both trees are roots and attend to [CLS].
    assert value(grid, "both directions (of all attention)", 0) == pytest.approx(8 / 10)


def test_sentences_without_a_tree_do_not_count() -> None:
    assert measure(recording_of(to_governor)).measures["both directions"].n[0, 0] == 3


def test_one_relation_and_its_subtypes() -> None:
    grid = measure(recording_of(to_governor), "nsubj")
    assert value(grid, "dependent to governor") == pytest.approx(1)
    assert grid.measures["dependent to governor"].n[0, 0] == 3
    assert value(measure(recording_of(to_governor), "obj"), "dependent to governor") == pytest.approx(1)
    with pytest.raises(Refusal, match="amod"):
        measure(recording_of(to_governor), "iobj")


def test_subtypes_can_be_left_out() -> None:
    """The passive subject of the second sentence, which is also in the pair, is no nsubj."""
    n_sentences = {
        subtypes: measure(recording_of(to_governor), "nsubj", subtypes=subtypes).measures["both directions"].n[0, 0]
        for subtypes in get_args(Subtypes)
    }
    assert n_sentences["separate"] < n_sentences["included"] == n_sentences["merged"] == 3
    with pytest.raises(Refusal, match="nsubj:pass"):
        measure(recording_of(to_governor), "nsubj:pass", subtypes="merged")


def test_neighbours_are_a_baseline() -> None:
    grid = measure(recording_of(planted.uniform_head))
    previous, following = (
        grid.baselines[f"always {name} word"]["dependent to governor"] for name in ("previous", "next")
    )
    # the, old(next), dog(next), cats(previous); she, was(next), today(previous), . of eight dependents
    assert following.value[0, 0] == pytest.approx(3 / 8)
    assert previous.value[0, 0] == pytest.approx(2 / 8)


def test_uniform_attention_has_a_closed_form() -> None:
    grid = measure(recording_of(planted.uniform_head))
    for name, estimates in grid.measures.items():
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name
    # In a single sentence the governor is one of five words, in the pair one of ten.
    sums = 2 * 4 / 7 + 8 / 13
    totals = 2 * 4 * 5 / 7 + 8 * 10 / 13
    assert value(grid, "dependent to governor") == pytest.approx(sums / totals)


def test_alignment_equals_a_loop_over_word_attention() -> None:
    """With words of two tokens."""
    recording = recording_of(planted.random_head(6))
    recorded_inputs = tuple(planted.merge_words(recorded_input) for recorded_input in recording.inputs)
    recording = replace(recording, inputs=recorded_inputs)
    result = recording.with_sites([edge_attention_site()])[edge_attention_site()]
    for recorded_input, attention, sums in zip(recorded_inputs, recording["attention"], result, strict=True):
        slots = word_slots(TokenBatch([recorded_input]))
        between_words = word_attention(torch.from_numpy(attention), slots)[0, 0].numpy()
        expected = np.zeros((2, 3))
        dependents, governors = set[int](), set[int]()
        start = 0
        for sentence in recorded_input.text.segments:
            for word, governor in enumerate(sentence.governors or ()):
                dependent_word, governor_word = start + word, start + governor
                if governor != ROOT and {dependent_word, governor_word} <= set(recorded_input.tokens.word_ids.tolist()):
                    expected[0, 0] += between_words[dependent_word, governor_word]
                    expected[0, 1] += between_words[governor_word, dependent_word]
                    dependents.add(dependent_word)
                    governors.add(governor_word)
            start += len(sentence)
        for column, rows in enumerate((dependents, governors, dependents | governors)):
            expected[1, column] = between_words[sorted(rows)].sum() if rows else 0
        expected[0, 2] = expected[0, :2].sum()
        np.testing.assert_allclose(sums[0, 0, :, :3], expected, atol=1e-6)


def test_relations_are_needed_for_one_relation() -> None:
    without_relations = Corpus(tuple(Example((replace(sentence, relations=None),)) for sentence in (FIRST, SECOND)))
    recording = planted.make_recording(without_relations, [[planted.uniform_head]])
    with pytest.raises(Refusal, match="relations"):
        measure(recording, "nsubj")
