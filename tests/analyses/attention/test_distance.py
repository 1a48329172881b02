"""Planted heads look as far as they were made to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses.attention.distance import DISTANCE, distance
from bertology.analyses.attention.entropy import ENTROPY, entropy
from bertology.encoder.pieces import Special
from bertology.measures.attention.head_measures import Average
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")


def recording_of(*heads: planted.HeadMap) -> Recording:
    return planted.recording_of(planted.corpus_of(*TEXTS), [list(heads)])


def with_split_words(recording: Recording) -> Recording:
    """The same maps, but pairs of neighbouring words are now two pieces of one word."""
    entries = tuple(
        replace(e, pieces=replace(e.pieces, word=np.where(e.pieces.word < 0, -1, e.pieces.word // 2).astype(np.int32)))
        for e in recording.entries
    )
    return replace(recording, entries=entries)


def measured(recording: Recording, average: Average = "pooled") -> HeadGrid:
    found = distance.function(recording.with_derived([DISTANCE]), None, average=average, seed=0)
    assert isinstance(found, HeadGrid)
    return found


LENGTHS = np.array([len(entry.pieces) for entry in planted.entries_of(planted.corpus_of(*TEXTS))])


def test_a_head_that_looks_two_back_looks_two_far() -> None:
    grid = measured(recording_of(planted.looking_at(-2), planted.looking_at(0)))
    # The first two pieces have nothing two back and look at themselves.
    expected = 2 * (LENGTHS - 2).sum() / LENGTHS.sum()
    assert grid.measures["pieces"].value[0, 0] == pytest.approx(expected)
    for estimates in grid.measures.values():
        assert estimates.value[0, 1] == 0


def test_special_tokens_can_be_left_out() -> None:
    grid = measured(recording_of(planted.at_kind(Special.CLS), planted.looking_at(1)))
    assert grid.measures["pieces"].value[0, 0] == pytest.approx((LENGTHS * (LENGTHS - 1) / 2).sum() / LENGTHS.sum())
    assert grid.measures["pieces, ordinary"].n[0, 0] == 0  # no attention between ordinary pieces
    assert grid.measures["pieces, ordinary"].value[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("average", ["pooled", "sentences"])
def test_uniform_attention_has_its_closed_form(average: Average) -> None:
    grid = measured(recording_of(planted.uniform), average)
    by_sentence = (LENGTHS**2 - 1) / (3 * LENGTHS)
    expected = np.average(by_sentence, weights=LENGTHS if average == "pooled" else None)
    assert grid.measures["pieces"].value[0, 0] == pytest.approx(expected)
    for name, estimates in grid.measures.items():
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name


def test_a_sentence_without_such_attention_does_not_count() -> None:
    """A head that looks ahead in most sentences and only at [CLS] in one: among ordinary pieces it looks 1 far."""

    def head(entry: planted.Entry) -> planted.Floats:
        return (planted.at_kind(Special.CLS) if "a" in entry.input.words else planted.looking_at(1))(entry)

    grid = measured(recording_of(head), "sentences")
    found = grid.measures["pieces, ordinary"]
    # The last piece of the pair's first sentence looks at [SEP], the only piece of "o" too.
    assert found.n[0, 0] == len(TEXTS) - 2
    assert found.value[0, 0] == pytest.approx(1)


def test_words_are_counted_in_words() -> None:
    whole = measured(recording_of(planted.looking_at(-2), planted.noise(4)))
    np.testing.assert_allclose(whole.measures["words"].value, whole.measures["pieces"].value, rtol=1e-6)
    split = measured(with_split_words(recording_of(planted.looking_at(-2), planted.noise(4))))
    np.testing.assert_allclose(split.measures["pieces"].value, whole.measures["pieces"].value, rtol=1e-6)
    assert split.measures["words, ordinary"].value[0, 0] < whole.measures["words, ordinary"].value[0, 0]


def test_in_a_causal_model_uniform_attention_is_to_what_came_before() -> None:
    def back(entry: planted.Entry) -> planted.Floats:
        seen = np.tri(len(entry.pieces))
        return seen / seen.sum(1, keepdims=True)

    recording = recording_of(back)
    recording = replace(recording, encoder=replace(recording.encoder, causal=True)).with_derived([DISTANCE, ENTROPY])
    far, wide = distance.function(recording, None, average="pooled", seed=0), entropy.function(recording, None, seed=0)
    for grid in (far, wide):
        assert isinstance(grid, HeadGrid)
        for name, estimates in grid.measures.items():
            even = grid.baselines["uniform attention"][name].value
            np.testing.assert_allclose(even, estimates.value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_every_sum_by_hand() -> None:
    recording = with_split_words(recording_of(planted.noise(3)))
    derived = recording.with_derived([DISTANCE])
    for entry, maps, found in zip(recording.entries, recording["attention"], derived[DISTANCE], strict=True):
        pieces, n = entry.pieces, len(entry.pieces)
        positions, position = [], -1
        for i in range(n):
            position += i == 0 or pieces.word[i] < 0 or pieces.word[i] != pieces.word[i - 1]
            positions.append(position)
        expected = np.zeros((2, 4))
        for i in range(n):
            share = 1 / positions.count(positions[i])
            for j in range(n):
                weight = float(maps[0, 0, i, j])
                inner = pieces.special[i] == Special.NONE and pieces.special[j] == Special.NONE
                expected[:, 0] += weight * abs(i - j), weight
                expected[:, 1] += weight * abs(i - j) * inner, weight * inner
                expected[:, 2] += weight * share * abs(positions[i] - positions[j]), weight * share
                expected[:, 3] += weight * share * abs(positions[i] - positions[j]) * inner, weight * share * inner
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-5, atol=1e-5)
