"""senses/subspace_probe finds planted senses under noise, also of unseen words; effect of an appended sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted
import planted_senses
from bertology.analyses import registry
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.run import RunInputs, run_analysis
from bertology.analyses.senses.subspace_probe.concatenation import (
    centroid_cosines,
    concatenation_test,
    single_sentence_states,
)
from bertology.analyses.word_senses.occurrences import split_occurrences
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import Curve, LayerCurve

NAME = "senses/subspace_probe"
WORDS = ("bank", "plant", "match", "spring", "bat", "light")


def make_recording(n_sentences: int = 20, *, strength: float = 1.0) -> Recording:
    """Senses along one dimension, the same for every word, and noise along eleven others."""

    def hidden(recorded: RecordedInput) -> planted.FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        states = generator.normal(size=(2, len(recorded.tokens), planted_senses.WIDTH))
        for word, sense in enumerate(recorded.text.segments[0].senses or ()):
            if sense:
                states[1, word + 1, 0] = strength * (1.0 if sense.endswith("1") else -1.0)
        return states

    recording = planted.make_recording(planted_senses.corpus(WORDS, n_sentences), [[planted.uniform_head]], hidden)
    return recording.with_sites(resolve_sites(["hidden.words"]))


def curve(recording: Recording, **options: Any) -> Curve:
    data = planted_senses.run(NAME, recording, **options).data
    assert isinstance(data, Curve)
    return data


def test_planted_direction_is_learned_and_transfers_to_other_words() -> None:
    data = curve(make_recording(), ranks="2,full", n_seeds=2)
    np.testing.assert_array_equal(data.x, [2, planted_senses.WIDTH])
    learned, others = data.measures["accuracy"], data.measures["accuracy (trained on other words)"]
    for name in ("random projection", "no projection", "shuffled senses", "most frequent sense"):
        assert learned[0].value > data.baselines[name]["accuracy"][0].value + 0.05, name
    assert learned[0].value > 0.9 and others[0].value > 0.9
    chance = curve(make_recording(), ranks="2", n_seeds=2, layer=0).measures["accuracy"][0]
    assert chance.low < 0.5 < chance.high


def test_no_projection_equals_the_nearest_centroid() -> None:
    recording = make_recording()
    data = curve(recording, ranks="2", n_seeds=2)
    disambiguation = planted_senses.run("senses/disambiguation", recording, method="centroid", n_seeds=2).data
    assert isinstance(disambiguation, LayerCurve)
    expected = disambiguation.measures["accuracy"].value[1]
    assert data.baselines["no projection"]["accuracy"].value[0] == pytest.approx(expected)


def test_centroid_cosines_equal_those_of_a_simple_implementation() -> None:
    recording = make_recording()
    test = concatenation_test(split_occurrences(recording, None, TrainTestSplit(n_seeds=1), analysis_name=NAME), 30, 0)
    near, far = centroid_cosines(test, single_sentence_states(test))
    train = test.sense_splits.train
    train_indices = test.sense_splits.splits[0][0]
    for row, index in enumerate(test.test_indices.tolist()):
        vector = train.examples.features[1, index].astype(float)
        for sense, cosines in ((train.senses[index], near), (test.opposite_senses[row], far)):
            mean = np.mean([train.examples.features[1, p] for p in train_indices if train.senses[p] == sense], 0)
            cosine = vector @ mean / np.linalg.norm(vector) / np.linalg.norm(mean)
            assert cosines[1, row] == pytest.approx(float(cosine), abs=1e-6)
        partners = {name: indices[row] for name, indices in test.appended.items()}
        assert train.lemmas[partners["other sense"]] == train.lemmas[index] != train.lemmas[partners["another word"]]
        assert train.senses[partners["same sense"]] == train.senses[index] != train.senses[partners["other sense"]]
        assert all(train.documents[partner] != train.documents[index] for partner in partners.values())
    assert len(test.test_indices) == 30 and not set(test.test_indices) & set(train_indices)


def test_an_appended_sentence_does_not_change_the_embeddings() -> None:
    """The embedding of a word in the first sentence does not depend on the second."""
    inputs = RunInputs(planted_senses.sentences_with(load_corpus("english"), "bank", "bat"), load("tiny"))
    data = run_analysis(registry.get(NAME), inputs, {"show": "concatenation", "sample_size": 12}).data
    assert isinstance(data, LayerCurve)
    single = data.measures["similarity ratio"]
    concatenated = data.measures["similarity ratio (with other-sense sentence)"]
    assert concatenated.value[0] == pytest.approx(single.value[0], abs=1e-6)
    assert abs(concatenated.value[1] - single.value[1]) > 1e-6
    assert set(data.baselines) == {
        "with a same-sense sentence", "with a sentence without the word", "shuffled senses", "untrained model"
    }  # fmt: skip
    assert data.sample == {"occurrences": 12, "inputs too long for the model": 0}


def test_invalid_options_are_refused() -> None:
    recording = make_recording(6)
    for options, message in (
        ({"ranks": "two"}, "--ranks"),
        ({"ranks": ""}, "--ranks"),
        ({"layer": 7}, "--layer was given 7"),
        ({"show": "concatenation"}, "recording cannot be run"),
        ({"n_seeds": 0}, "--n-seeds"),
    ):
        with pytest.raises(Refusal, match=message):
            planted_senses.run(NAME, recording, **options)


def test_answers_have_the_accuracies_of_each_rank() -> None:
    data = curve(make_recording(12, strength=2.0), ranks="1,2", n_seeds=2)
    answers = data.answers()

    def mean_correct(**condition: object) -> float:
        return float(np.mean([a["correct"] for a in answers if all(a[key] == v for key, v in condition.items())]))

    for number, rank in enumerate(data.x.tolist()):
        for measure, estimates in data.measures.items():
            found = mean_correct(series="model", measure=measure, rank=rank)
            assert found == pytest.approx(estimates.value[number], abs=1e-6)
        for name in ("random projection", "shuffled senses"):
            expected = data.baselines[name]["accuracy"].value[number]
            assert mean_correct(series=name, rank=rank) == pytest.approx(expected, abs=1e-6)
    for name in ("no projection", "most frequent sense"):
        assert mean_correct(series=name) == pytest.approx(data.baselines[name]["accuracy"].value[0], abs=1e-6)
