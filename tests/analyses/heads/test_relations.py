"""Planted relations are told from attention, noise is not; pairs without a relation are what they should be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.relations import relations
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.sentence import ROOT
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.heads.word_pairs import pair_attention, pairs_of, recorded_pairs
from bertology.recording.recorder import record
from bertology.recording.word_level import to_words, words_of
from bertology.results.shapes import Table

CORPUS = corpus_named("english", limit=150)
ENTRIES = planted.entries_of(CORPUS)


def to_head(*names: str, back: bool = False) -> planted.HeadMap:
    """Words of these relations (all, where none is named) look at their head, or their head at them."""

    def head(entry: planted.Entry) -> planted.Floats:
        n = len(entry.pieces)
        weights = np.random.default_rng(entry.pieces.ids.tolist()).uniform(0, 0.02, (n, n))
        (sentence,) = entry.input.parts
        for word, (parent, relation) in enumerate(zip(sentence.heads or (), sentence.relations or (), strict=True)):
            if parent != ROOT and (not names or relation in names):
                weights[(1 + parent, 1 + word) if back else (1 + word, 1 + parent)] = 1
        return weights / weights.sum(1, keepdims=True)

    return head


def measured(*heads: planted.HeadMap, **options: Any) -> Table:
    recording = planted.recording_of(CORPUS, [list(heads)])
    found = run(relations, Subject(recording=recording), {"minimum": 30, "seeds": 2, **options}).data
    assert isinstance(found, Table)
    return found


def score(table: Table, row: str, view: str = "both directions", baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures[view].value[table.rows_named.index(row)])


def test_a_planted_head_says_that_there_is_a_relation() -> None:
    table = measured(planted.noise(1), to_head())
    for view in ("both directions", "dependent to head"):
        assert score(table, "relation exists", view) > 0.98
    assert score(table, "relation exists", baseline="control labels") < 0.62


def test_the_direction_that_is_not_planted_says_nothing() -> None:
    table = measured(planted.noise(1), to_head(back=True), negatives="matched")
    assert score(table, "relation exists") > 0.98
    assert score(table, "relation exists", "dependent to head") < 0.62


def test_planted_relations_are_named() -> None:
    frequent = list(measured(planted.uniform).rows_named[2:])
    table = measured(*(to_head(name) for name in frequent))
    assert score(table, "which relation") > 0.98
    for name in frequent:
        assert score(table, name) > 0.95, name
    one = measured(to_head("det"), planted.noise(1))
    assert score(one, "det") > 0.98
    assert score(one, "case") < 0.6


def test_noise_gives_chance() -> None:
    table = measured(planted.noise(1), planted.noise(2))
    assert abs(score(table, "relation exists") - 0.5) < 0.06
    assert score(table, "which relation") < score(table, "which relation", baseline="majority") + 0.06


def test_baselines_are_what_they_say() -> None:
    table = measured(planted.noise(1))
    assert score(table, "relation exists", baseline="majority") == 0.5
    assert score(table, "relation exists", baseline="offset only") > 0.65
    first = table.rows_named[2]
    share = score(table, "which relation", baseline="majority")
    assert score(table, first, baseline="majority") == pytest.approx(
        2 * share / (1 + share)
    )  # recall 1, precision share
    matched = measured(planted.noise(1), negatives="matched")
    assert abs(score(matched, "relation exists", baseline="offset only") - 0.5) < 0.04
    assert np.isnan(table.baselines["control labels"]["both directions"].value[2:]).all()


@pytest.mark.parametrize("negatives", ["any", "matched"])
def test_pairs_without_a_relation(negatives: Any) -> None:
    for entry in ENTRIES[:60]:
        (sentence,) = entry.input.parts
        heads = sentence.heads or ()
        edges = {frozenset((word, head)) for word, head in enumerate(heads) if head != ROOT}
        pairs = pairs_of(entry, negatives, (0, 1))
        for word, head in enumerate(heads):
            own, *others = pairs[word].tolist()
            assert own == ([-1, -1] if head == ROOT else [word, head])
            for first, second in others:
                if first < 0:
                    continue
                assert first != second and frozenset((first, second)) not in edges
                assert first == word if negatives == "any" else second - first == head - word
        np.testing.assert_array_equal(pairs[:, :2], pairs_of(entry, negatives, (0,)))
    drawn = [pairs_of(entry, negatives, (0, 1)) for entry in ENTRIES]
    assert any((pairs[:, 1] != pairs[:, 2]).any() for pairs in drawn)


def test_drawn_words_are_spread_over_the_sentence() -> None:
    long = max(ENTRIES, key=lambda entry: entry.pieces.words)
    drawn = pairs_of(long, "any", tuple(range(60)))[:, 1:, 1]
    counts = Counter(drawn[drawn >= 0].tolist())
    assert len(counts) == long.pieces.words
    assert max(counts.values()) < 2 * np.mean(list(counts.values()))


def test_the_site_equals_the_word_level_map() -> None:
    import torch

    from bertology.recording.frame import Frame

    encoder, draws = load("tiny"), (0, 1)
    recording = record(encoder, CORPUS[:5], ("attention", pair_attention("any", draws)))
    for entry, maps, found in zip(
        recording.entries, recording["attention"], recording[pair_attention("any", draws)], strict=True
    ):
        words = to_words(torch.from_numpy(np.array(maps)), words_of(Frame([entry] * encoder.layers))).numpy()
        for (word, pair), start in np.ndenumerate(pairs_of(entry, "any", draws)[..., 0]):
            end = pairs_of(entry, "any", draws)[word, pair, 1]
            if start < 0:
                assert np.isnan(found[:, :, word, pair]).all()
            else:
                np.testing.assert_allclose(found[:, :, word, pair, 0], words[:, :, start, end], atol=1e-6)
                np.testing.assert_allclose(found[:, :, word, pair, 1], words[:, :, end, start], atol=1e-6)


def test_punctuation_and_roots_are_left_out() -> None:
    recording = planted.recording_of(CORPUS[:20], [[planted.uniform]]).with_derived([pair_attention("any", (0,))])
    found = recorded_pairs(recording, range(20), "any", (0,))
    relations_there = [r for item in CORPUS[:20] for r in item.parts[0].relations or ()]
    assert len(found.sentence) == sum(r not in ("punct", "root") for r in relations_there)
    assert not {"punct", "root"} & set(found.relation.tolist())


def test_too_few_words_are_refused() -> None:
    with pytest.raises(Refusal, match="minimum"):
        measured(planted.uniform, minimum=100_000)
