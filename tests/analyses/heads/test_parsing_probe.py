"""The probe predicts planted arcs, noise is at the baselines, and training and test data are separate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.heads.parsing_probe.analysis import parsing_probe
from bertology.analyses.heads.parsing_probe.dataset import (
    ArcDataset,
    gold_governor_candidates,
    is_scored_word,
    special_attention_site,
    word_attention_site,
)
from bertology.analyses.probing.train_test_split import train_mask
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT
from bertology.encoder.load import load
from bertology.encoder.static import word_vectors
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.measured_shape import gain_measure
from bertology.results.shapes import Table

CORPUS = load_corpus("english", limit=90)
OPTIONS = {"n_seeds": 2, "epochs": 15, "hidden_size": 8, "word_vectors": "random-vectors:8"}


def to_governor(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """Every word attends to its governor, roots to [CLS], with a little uniform attention."""
    n = len(recorded_input.tokens)
    weights = np.full((n, n), 0.05 / n)
    start = 1
    for sentence in recorded_input.text.segments:
        for word, governor in enumerate(sentence.governors or ()):
            weights[start + word, 0 if governor == ROOT else start + governor] += 0.95
        start += len(sentence) + 1
    return weights / weights.sum(1, keepdims=True)


def run(*heads: planted.HeadAttention, **options: Any) -> Table:
    recording = planted.make_recording(CORPUS, [list(heads)])
    result = run_analysis(parsing_probe, RunInputs(recording=recording), {**OPTIONS, **options}).data
    assert isinstance(result, Table)
    return result


def uas(table: Table, row: str = "attention", baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures["UAS"].value[table.row_names.index(row)])


def test_a_planted_head_predicts_the_complete_tree() -> None:
    table = run(planted.random_head(1), to_governor, epochs=40)  # many weights, few sentences
    assert uas(table) > 0.99
    assert uas(table, "attention and words") > 0.95
    assert uas(table, baseline="right-branching") < 0.5
    assert uas(table, baseline="distance and words") < 0.7


def test_a_head_from_governors_to_dependents_is_used_as_well() -> None:
    def to_dependents(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        transposed = to_governor(recorded_input).T + 1e-6
        return transposed / transposed.sum(1, keepdims=True)

    assert uas(run(planted.random_head(1), to_dependents)) > 0.9  # divided among dependents, hence weaker


def test_noise_predicts_no_tree() -> None:
    table = run(planted.random_head(1), planted.random_head(2))
    assert uas(table) < 0.15 < uas(table, baseline="right-branching")
    assert uas(run(planted.uniform_head)) < 0.15


GAIN = gain_measure("UAS")


def test_a_probe_that_found_everything_gains_nothing_from_more_data() -> None:
    """One head holds the tree: half of the sentences are enough. Weights that depend on words need more of them."""
    gains = run(to_governor).measures[GAIN]
    assert abs(gains.value[0]) < 0.01 and gains.low[0] < 0.01
    words = run(planted.random_head(1), planted.random_head(2), to_governor, epochs=3).measures
    assert words[GAIN].value[1] > 0.02 and words[GAIN].low[1] <= words[GAIN].value[1] <= words[GAIN].high[1]


def test_half_of_the_training_data_is_another_one_for_each_seed() -> None:
    inputs = tuple(planted.recorded_inputs(CORPUS))
    empty = tuple(np.zeros((1, 1)) for _ in inputs)
    dataset = ArcDataset(inputs, empty, empty, empty)
    halves = [[recorded.example_index for recorded in dataset.random_half(seed).inputs] for seed in (0, 0, 1)]
    assert len(halves[0]) == len(inputs) // 2 and halves[0] == halves[1] != halves[2]


def test_a_head_that_attends_to_the_next_word_is_right_branching() -> None:
    table = run(planted.offset_head(1))
    assert uas(table) == pytest.approx(uas(table, baseline="right-branching"), abs=0.1)


def test_the_train_size_limits_the_training_sentences() -> None:
    table = run(to_governor, train_size=40)
    assert uas(table) > 0.95
    assert table.sample["training sentences"] == 40
    assert table.sample["unused training sentences (beyond --train-size)"] > 0
    assert not any("unused" in name for name in run(to_governor, epochs=1).sample)


def test_punctuation_does_not_count_and_roots_do() -> None:
    recorded_input = planted.recorded_inputs(CORPUS)[0]
    (sentence,) = recorded_input.text.segments
    assert sentence.relations is not None and sentence.governors is not None
    assert "punct" in sentence.relations
    for word, (relation, governor) in enumerate(zip(sentence.relations, sentence.governors, strict=True)):
        assert is_scored_word(recorded_input)[word] == (relation != "punct")
        assert gold_governor_candidates(recorded_input)[word] == governor + 1
    table = run(planted.uniform_head)
    is_train = train_mask(planted.recorded_inputs(CORPUS), 0.7)
    test_sentences = [example.segments[0] for example, train in zip(CORPUS, is_train, strict=True) if not train]
    assert table.measures["UAS"].n[0] == len(test_sentences)
    n_right_branching = sum(
        governor == word + 1
        for test_sentence in test_sentences
        for word, (governor, relation) in enumerate(
            zip(test_sentence.governors or (), test_sentence.relations or (), strict=True)
        )
        if relation != "punct"
    )
    n_words = sum(relation != "punct" for test_sentence in test_sentences for relation in test_sentence.relations or ())
    assert uas(table, baseline="right-branching") == pytest.approx(n_right_branching / n_words)


def test_words_without_tokens_are_not_scored() -> None:
    recorded_input = planted.recorded_inputs(CORPUS)[0]
    without_first = replace(
        recorded_input.tokens,
        word_ids=np.where(recorded_input.tokens.word_ids == 0, -1, recorded_input.tokens.word_ids).astype(np.int32),
    )
    result = gold_governor_candidates(replace(recorded_input, tokens=without_first))
    assert result[0] == -1
    assert all(
        result[word] == -1
        for word, governor in enumerate(recorded_input.text.segments[0].governors or ())
        if governor == 0
    )


def test_documents_are_not_split_and_order_does_not_matter() -> None:
    recorded_inputs = planted.recorded_inputs(CORPUS)
    is_train = train_mask(recorded_inputs, 0.5)
    documents = [recorded_input.text.segments[0].document for recorded_input in recorded_inputs]
    assert len(set(documents)) > 2
    train_documents = {document for document, train in zip(documents, is_train, strict=True) if train}
    test_documents = {document for document, train in zip(documents, is_train, strict=True) if not train}
    assert train_documents and test_documents and not train_documents & test_documents
    np.testing.assert_array_equal(train_mask(recorded_inputs[::-1], 0.5)[::-1], is_train)
    assert 0.5 <= is_train.mean() < 0.9
    without_documents = planted.recorded_inputs(planted.make_corpus("a b", "a b", "c d", "e f"))
    is_train = train_mask(without_documents, 0.5)
    assert is_train[0] == is_train[1] and 0 < is_train.sum() < 4


def test_word_attention_is_stored_in_half_precision() -> None:
    encoder, corpus = load("tiny"), CORPUS[:4]
    recording = record(encoder, corpus, (word_attention_site, special_attention_site))
    for recorded_input, words, special in zip(
        recording.inputs, recording[word_attention_site], recording[special_attention_site], strict=True
    ):
        assert words.dtype == special.dtype == np.float16
        assert words.shape == (
            encoder.layers,
            encoder.heads,
            recorded_input.tokens.n_words,
            recorded_input.tokens.n_words,
        )
        total = words.astype(np.float64).sum(-1) + special.astype(np.float64)[..., :2].sum(-1)
        np.testing.assert_allclose(total, 1, atol=5e-3)  # a word's row over words, [CLS] and [SEP]
    planted_recording = planted.make_recording(corpus, [[planted.random_head(3)]])
    derived = planted_recording.with_sites([special_attention_site])
    pattern = np.asarray(planted_recording["attention"][0][0, 0])
    expected = np.stack([pattern[1:-1, 0], pattern[1:-1, -1], pattern[0, 1:-1], pattern[-1, 1:-1]], -1)
    np.testing.assert_allclose(derived[special_attention_site][0][0, 0], expected, atol=1e-3)


def test_word_vectors_are_means_over_tokens() -> None:
    static = load("static:tiny")
    corpus = planted.make_corpus("unbelievable cats sat")
    (recorded_input,) = planted.recorded_inputs(corpus)
    (tokens,) = static.tokenise([recorded_input.text])
    states = record(static, corpus, ("hidden",))["hidden"][0][0]
    (result,) = word_vectors(static, [recorded_input])
    for word in range(3):
        np.testing.assert_allclose(result[word], states[tokens.word_ids == word].mean(0), rtol=1e-5)


def test_training_on_another_corpus_needs_the_model() -> None:
    inputs = RunInputs(corpus=CORPUS[:20], encoder=load("tiny"))
    options = {"train_corpus": "english", "train_size": 30, "n_seeds": 1, "epochs": 1, "hidden_size": 4}
    table = run_analysis(registry.get("heads/parsing_probe"), inputs, options).data
    assert isinstance(table, Table)
    assert table.measures["UAS"].n[0] == 20
    assert table.sample["training sentences"] == 10  # 20 of the 30 are also in the test corpus
    assert "static:" in table.notes["attention and words"]
    with pytest.raises(Refusal, match="--train-corpus"):
        run(planted.uniform_head, train_corpus="english")


def test_legacy_changes_only_probes_with_words() -> None:
    default, legacy = (run(planted.random_head(1), to_governor, legacy=value, epochs=3) for value in (False, True))
    assert uas(default) == uas(legacy)
    assert uas(default, baseline="distance and words") != uas(legacy, baseline="distance and words")


def test_one_sentence_is_refused() -> None:
    recording: Recording = planted.make_recording(CORPUS[:1], [[planted.uniform_head]])
    with pytest.raises(Refusal, match="too few sentences"):
        run_analysis(parsing_probe, RunInputs(recording=recording), OPTIONS)
