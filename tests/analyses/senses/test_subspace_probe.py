"""senses/subspace_probe finds planted senses under noise, also of unseen words; effect of an added sentence."""

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


def hidden_under_noise(n_sentences: int = 20, *, strength: float = 1.0) -> Recording:
    """Senses along one dimension, the same for every word, and noise along eleven others."""

    def hidden(recorded_input: RecordedInput) -> planted.FloatArray:
        generator = np.random.default_rng(recorded_input.tokens.ids.tolist())
        states = generator.normal(size=(2, len(recorded_input.tokens), planted_senses.WIDTH))
        for word, sense in enumerate(recorded_input.text.segments[0].senses or ()):
            if sense:
                states[1, word + 1, 0] = strength * (1.0 if sense.endswith("1") else -1.0)
        return states

    made = planted.make_recording(planted_senses.corpus(WORDS, n_sentences), [[planted.uniform_head]], hidden)
    return made.with_sites(resolve_sites(["hidden.words"]))


def curve(recorded: Recording, **options: Any) -> Curve:
    result = planted_senses.run(NAME, recorded, **options).data
    assert isinstance(result, Curve)
    return result


def test_planted_direction_is_learned_and_transfers_to_other_words() -> None:
    result = curve(hidden_under_noise(), ranks="2,full", n_seeds=2)
    np.testing.assert_array_equal(result.x, [2, planted_senses.WIDTH])
    learned, others = result.measures["accuracy"], result.measures["accuracy (trained on other words)"]
    for name in ("random projection", "no projection", "shuffled senses", "most frequent sense"):
        assert learned[0].value > result.baselines[name]["accuracy"][0].value + 0.05, name
    assert learned[0].value > 0.9 and others[0].value > 0.9
    chance = curve(hidden_under_noise(), ranks="2", n_seeds=2, layer=0).measures["accuracy"][0]
    assert chance.low < 0.5 < chance.high


def test_no_projection_equals_the_nearest_centroid() -> None:
    recorded = hidden_under_noise()
    result = curve(recorded, ranks="2", n_seeds=2)
    senses = planted_senses.run("senses/disambiguation", recorded, method="centroid", n_seeds=2).data
    assert isinstance(senses, LayerCurve)
    assert result.baselines["no projection"]["accuracy"].value[0] == pytest.approx(senses.measures["accuracy"].value[1])


def test_centroid_cosines_equal_those_of_a_simple_implementation() -> None:
    recorded = hidden_under_noise()
    test = concatenation_test(
        split_occurrences(recorded, None, TrainTestSplit("", 0, 0.7, 0), 1, analysis_name=NAME), 30, 0
    )
    near, far = centroid_cosines(test, single_sentence_states(test))
    train = test.sense_splits.train
    first = test.sense_splits.splits[0][0]
    for number, case in enumerate(test.test_indices.tolist()):
        vector = train.examples.features[1, case].astype(float)
        for sense, cosines in ((train.senses[case], near), (test.opposite_senses[number], far)):
            mean = np.mean([train.examples.features[1, p] for p in first if train.senses[p] == sense], 0)
            cosine = vector @ mean / np.linalg.norm(vector) / np.linalg.norm(mean)
            assert cosines[1, number] == pytest.approx(float(cosine), abs=1e-6)
        partners = {name: indices[number] for name, indices in test.appended.items()}
        assert train.lemmas[partners["other sense"]] == train.lemmas[case] != train.lemmas[partners["another word"]]
        assert train.senses[partners["same sense"]] == train.senses[case] != train.senses[partners["other sense"]]
        assert all(train.documents[index] != train.documents[case] for index in partners.values())
    assert len(test.test_indices) == 30 and not set(test.test_indices) & set(first)


def test_added_sentence_does_not_change_the_embeddings() -> None:
    """The embedding of a word in the first sentence does not depend on the second."""
    subject = RunInputs(planted_senses.sentences_with(load_corpus("english"), "bank", "bat"), load("tiny"))
    result = run_analysis(registry.get(NAME), subject, {"show": "concatenation", "sample_size": 12}).data
    assert isinstance(result, LayerCurve)
    single = result.measures["similarity ratio"]
    concatenated = result.measures["similarity ratio (with other-sense sentence)"]
    assert concatenated.value[0] == pytest.approx(single.value[0], abs=1e-6)
    assert abs(concatenated.value[1] - single.value[1]) > 1e-6
    assert set(result.baselines) == {
        "with a same-sense sentence", "with a sentence without the word", "shuffled senses", "untrained model"
    }  # fmt: skip
    assert result.sample == {"occurrences": 12, "inputs too long for the model": 0}


def test_invalid_options_are_refused() -> None:
    recorded = hidden_under_noise(6)
    for options, message in (
        ({"ranks": "two"}, "--ranks"),
        ({"ranks": ""}, "--ranks"),
        ({"layer": 7}, "--layer was given 7"),
        ({"show": "concatenation"}, "recording cannot be run"),
        ({"n_seeds": 0}, "--n-seeds"),
    ):
        with pytest.raises(Refusal, match=message):
            planted_senses.run(NAME, recorded, **options)
