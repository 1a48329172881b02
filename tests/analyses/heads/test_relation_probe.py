"""Planted relations are predicted from attention, noise is not; negative pairs have no relation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

import planted
from bertology.analyses.heads.relation_probe.analysis import relation_probe
from bertology.analyses.heads.relation_probe.word_pairs import (
    pair_attention_site,
    pair_dataset,
    positive_and_negative_pairs,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.results.shapes import Table
from bertology.statistics.words import word_attention, word_slots

CORPUS = load_corpus("english", limit=150)
INPUTS = planted.recorded_inputs(CORPUS)


def to_governor(*names: str, reverse: bool = False) -> planted.HeadAttention:
    """Words of these relations (default: all) attend to their governor, or the governor to them."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        n = len(recorded_input.tokens)
        weights = np.random.default_rng(recorded_input.tokens.ids.tolist()).uniform(0, 0.02, (n, n))
        (sentence,) = recorded_input.text.segments
        for word, (governor, relation) in enumerate(
            zip(sentence.governors or (), sentence.relations or (), strict=True)
        ):
            if governor != ROOT and (not names or relation in names):
                weights[(1 + governor, 1 + word) if reverse else (1 + word, 1 + governor)] = 1
        return weights / weights.sum(1, keepdims=True)

    return head


def run(*heads: planted.HeadAttention, **options: Any) -> Table:
    recording = planted.make_recording(CORPUS, [list(heads)])
    result = run_analysis(
        relation_probe, RunInputs(recording=recording), {"min_examples": 30, "n_seeds": 2, **options}
    ).data
    assert isinstance(result, Table)
    return result


def score(table: Table, row: str, view: str = "both directions", baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures[view].value[table.row_names.index(row)])


def test_a_planted_head_predicts_that_a_relation_exists() -> None:
    table = run(planted.random_head(1), to_governor())
    for view in ("both directions", "dependent to governor"):
        assert score(table, "relation exists", view) > 0.98
    assert score(table, "relation exists", baseline="control task") < 0.62


def test_a_head_from_governors_to_dependents_informs_only_that_direction() -> None:
    table = run(planted.random_head(1), to_governor(reverse=True), negatives="distance-matched")
    assert score(table, "relation exists") > 0.98
    assert score(table, "relation exists", "dependent to governor") < 0.62


def test_planted_relations_are_predicted() -> None:
    frequent = list(run(planted.uniform_head).row_names[2:])
    table = run(*(to_governor(name) for name in frequent))
    assert score(table, "which relation") > 0.98
    for name in frequent:
        assert score(table, name) > 0.95, name
    only_det = run(to_governor("det"), planted.random_head(1))
    assert score(only_det, "det") > 0.98
    assert score(only_det, "case") < 0.6


def test_noise_is_at_chance() -> None:
    table = run(planted.random_head(1), planted.random_head(2))
    assert abs(score(table, "relation exists") - 0.5) < 0.06
    assert score(table, "which relation") < score(table, "which relation", baseline="majority class") + 0.06


def test_baselines_have_their_expected_scores() -> None:
    table = run(planted.random_head(1))
    assert score(table, "relation exists", baseline="majority class") == 0.5
    assert score(table, "relation exists", baseline="distance only") > 0.65
    first = table.row_names[2]
    proportion = score(table, "which relation", baseline="majority class")
    # Recall is 1, precision the proportion of the class.
    assert score(table, first, baseline="majority class") == pytest.approx(2 * proportion / (1 + proportion))
    matched = run(planted.random_head(1), negatives="distance-matched")
    assert abs(score(matched, "relation exists", baseline="distance only") - 0.5) < 0.04
    assert np.isnan(table.baselines["control task"]["both directions"].value[2:]).all()


@pytest.mark.parametrize("negatives", ["any", "distance-matched"])
def test_negative_pairs_have_no_relation(negatives: Any) -> None:
    for recorded_input in INPUTS[:60]:
        (sentence,) = recorded_input.text.segments
        governors = sentence.governors or ()
        edges = {frozenset((word, governor)) for word, governor in enumerate(governors) if governor != ROOT}
        pairs = positive_and_negative_pairs(recorded_input, negatives, (0, 1))
        for word, governor in enumerate(governors):
            positive, *negatives_of_word = pairs[word].tolist()
            assert positive == ([-1, -1] if governor == ROOT else [word, governor])
            for first, second in negatives_of_word:
                if first < 0:
                    continue
                assert first != second and frozenset((first, second)) not in edges
                assert first == word if negatives == "any" else second - first == governor - word
        np.testing.assert_array_equal(pairs[:, :2], positive_and_negative_pairs(recorded_input, negatives, (0,)))
    sampled = [positive_and_negative_pairs(recorded_input, negatives, (0, 1)) for recorded_input in INPUTS]
    assert any((pairs[:, 1] != pairs[:, 2]).any() for pairs in sampled)


def test_negative_pairs_cover_the_sentence_evenly() -> None:
    long = max(INPUTS, key=lambda recorded_input: recorded_input.tokens.n_words)
    sampled = positive_and_negative_pairs(long, "any", tuple(range(60)))[:, 1:, 1]
    counts = Counter(sampled[sampled >= 0].tolist())
    assert len(counts) == long.tokens.n_words
    assert max(counts.values()) < 2 * np.mean(list(counts.values()))


def test_the_site_equals_word_attention() -> None:
    encoder, seeds = load("tiny"), (0, 1)
    recording = record(encoder, CORPUS[:5], ("attention", pair_attention_site("any", seeds)))
    for recorded_input, attention, result in zip(
        recording.inputs, recording["attention"], recording[pair_attention_site("any", seeds)], strict=True
    ):
        between_words = word_attention(
            torch.from_numpy(np.array(attention)), word_slots(TokenBatch([recorded_input] * encoder.layers))
        ).numpy()
        for (word, pair), start in np.ndenumerate(positive_and_negative_pairs(recorded_input, "any", seeds)[..., 0]):
            end = positive_and_negative_pairs(recorded_input, "any", seeds)[word, pair, 1]
            if start < 0:
                assert np.isnan(result[:, :, word, pair]).all()
            else:
                np.testing.assert_allclose(result[:, :, word, pair, 0], between_words[:, :, start, end], atol=1e-6)
                np.testing.assert_allclose(result[:, :, word, pair, 1], between_words[:, :, end, start], atol=1e-6)


def test_punctuation_and_roots_are_excluded() -> None:
    recording = planted.make_recording(CORPUS[:20], [[planted.uniform_head]]).with_sites(
        [pair_attention_site("any", (0,))]
    )
    result = pair_dataset(recording, range(20), "any", (0,))
    relations = [relation for example in CORPUS[:20] for relation in example.segments[0].relations or ()]
    assert len(result.sentence_index) == sum(relation not in ("punct", "root") for relation in relations)
    assert not {"punct", "root"} & set(result.relation.tolist())


def test_too_few_words_are_refused() -> None:
    with pytest.raises(Refusal, match="min-examples"):
        run(planted.uniform_head, min_examples=100_000)


def test_a_planted_relation_is_learnt_from_half_of_the_sentences() -> None:
    """What a single head shows needs few sentences; noise gains nothing from more of them."""
    gain = "both directions - both directions (half the training data)"
    planted_table = run(planted.random_head(1), to_governor())
    noise = run(planted.random_head(1), planted.random_head(2))
    row = planted_table.row_names.index("relation exists")
    assert abs(planted_table.measures[gain].value[row]) < 0.02
    assert noise.measures[gain][row].low < 0.02
    assert planted_table.sample["training sentences"] > 100
    full, half = (planted_table.measures[name] for name in ("both directions", gain))
    np.testing.assert_array_equal(full.n, half.n)


def test_halves_differ_by_seed_and_are_whole_sentences() -> None:
    recording = planted.make_recording(CORPUS, [[planted.random_head(1)]])
    pairs = pair_dataset(recording.with_sites([pair_attention_site("any", (0, 1))]), range(40), "any", (0, 1))
    first, second = (pairs.random_half(seed) for seed in (0, 1))
    sentences = [set(np.unique(half.sentence_index).tolist()) for half in (first, second)]
    everything = np.unique(pairs.sentence_index)
    assert len(sentences[0]) == len(sentences[1]) == round(len(everything) / 2) and sentences[0] != sentences[1]
    for half, chosen in zip((first, second), sentences, strict=True):
        assert len(half.sentence_index) == np.isin(pairs.sentence_index, list(chosen)).sum()
    of_seed = pairs.of_seed(1)
    np.testing.assert_array_equal(of_seed.pairs, pairs.pairs[:, [0, 2]])
    np.testing.assert_array_equal(of_seed.has_negative[0], pairs.has_negative[1])
