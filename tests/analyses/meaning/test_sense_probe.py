"""The probe finds planted senses under noise, in words it has not seen too; joining leaks what the model lets leak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted
import sensed
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.division import Division
from bertology.measures.meaning.sense_joining import alone, joining, to_centroids
from bertology.measures.meaning.sense_material import divided
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve
from bertology.results.shapes import Curve, LayerCurve

NAME = "meaning/sense_probe"
WORDS = ("bank", "plant", "match", "spring", "bat", "light")


def hidden_under_noise(each: int = 20, *, strength: float = 1.0) -> Recording:
    """Senses along one direction of small spread, the same for every word, beside eleven that are noise."""

    def hidden(entry: Entry) -> planted.Floats:
        generator = np.random.default_rng(entry.pieces.ids.tolist())
        states = generator.normal(size=(2, len(entry.pieces), sensed.WIDTH))
        for word, sense in enumerate(entry.input.parts[0].senses or ()):
            if sense:
                states[1, word + 1, 0] = strength * (1.0 if sense.endswith("1") else -1.0)
        return states

    made = planted.recording_of(sensed.corpus(WORDS, each), [[planted.uniform]], hidden)
    return made.with_derived(resolve(["hidden.words"]))


def curve(recorded: Recording, **options: Any) -> Curve:
    found = sensed.result(NAME, recorded, **options).data
    assert isinstance(found, Curve)
    return found


def test_the_planted_direction_is_learned_and_holds_for_other_words() -> None:
    found = curve(hidden_under_noise(), dimensions="2,0", seeds=2)
    np.testing.assert_array_equal(found.points, [2, sensed.WIDTH])
    learned, others = found.measures["accuracy"], found.measures["accuracy, learned from other words"]
    for name in ("random map", "no map", "shuffled senses", "most frequent sense"):
        assert learned[0].value > found.baselines[name]["accuracy"][0].value + 0.05, name
    assert learned[0].value > 0.9 and others[0].value > 0.9
    chance = curve(hidden_under_noise(), dimensions="2", seeds=2, layer=0).measures["accuracy"][0]
    assert chance.low < 0.5 < chance.high


def test_all_dimensions_without_a_map_are_the_nearest_centroid() -> None:
    recorded = hidden_under_noise()
    found = curve(recorded, dimensions="2", seeds=2)
    senses = sensed.result("meaning/senses", recorded, rule="centroids", seeds=2).data
    assert isinstance(senses, LayerCurve)
    assert found.baselines["no map"]["accuracy"].value[0] == pytest.approx(senses.measures["accuracy"].value[1])


def test_ratios_are_those_of_a_plain_restatement() -> None:
    recorded = hidden_under_noise()
    own = joining(divided(recorded, None, Division("", 0, 0.7, 0), 1, purpose=NAME), 30, 0)
    near, far = to_centroids(own, alone(own))
    material = own.divided.learned
    first = own.divided.runs[0][0]
    for number, case in enumerate(own.cases.tolist()):
        vector = material.examples.features[1, case].astype(float)
        for sense, cosines in ((material.sense[case], near), (own.opposite[number], far)):
            mean = np.mean([material.examples.features[1, p] for p in first if material.sense[p] == sense], 0)
            cosine = vector @ mean / np.linalg.norm(vector) / np.linalg.norm(mean)
            assert cosines[1, number] == pytest.approx(float(cosine), abs=1e-6)
        partners = {name: places[number] for name, places in own.partners.items()}
        assert (
            material.lemma[partners["other sense"]] == material.lemma[case] != material.lemma[partners["another word"]]
        )
        assert material.sense[partners["same sense"]] == material.sense[case] != material.sense[partners["other sense"]]
        assert all(material.documents[place] != material.documents[case] for place in partners.values())
    assert len(own.cases) == 30 and not set(own.cases) & set(first)


def test_joining_changes_only_what_attends() -> None:
    """The embeddings of a word that stands first in the joined text do not know of what follows."""
    subject = Subject(sensed.only_with(corpus_named("english"), "bank", "bat"), load("tiny"))
    found = run(registry.get(NAME), subject, {"show": "joined", "most": 12}).data
    assert isinstance(found, LayerCurve)
    joined, lone = found.measures["ratio joined to the other sense"], found.measures["ratio alone"]
    assert joined.value[0] == pytest.approx(lone.value[0], abs=1e-6)
    assert abs(joined.value[1] - lone.value[1]) > 1e-6
    assert set(found.baselines) == {
        "joined to same sense", "joined to another word", "shuffled senses", "random weights"
    }  # fmt: skip
    assert "12 occurrences; 0 joined inputs too long" in found.units["ratio alone"]


def test_what_cannot_be_asked_is_refused() -> None:
    recorded = hidden_under_noise(6)
    for options, said in (
        ({"dimensions": "two"}, "--dimensions"),
        ({"dimensions": ""}, "--dimensions"),
        ({"layer": 7}, "layer 7"),
        ({"show": "joined"}, "recording cannot be run"),
        ({"seeds": 0}, "--seeds"),
    ):
        with pytest.raises(Refusal, match=said):
            sensed.result(NAME, recorded, **options)
