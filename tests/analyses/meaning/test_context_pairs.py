"""Pairs of one sense are told from others in the layer that has senses, and at chance elsewhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
import sensed
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item, read_text
from bertology.corpus.read import read
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.division import Division
from bertology.measures.meaning.sense_material import occurrences
from bertology.measures.meaning.sense_pairs import drawn, pair_cosines, pair_material
from bertology.recording.entry import Entry
from bertology.recording.sites import resolve
from bertology.results.shapes import LayerCurve
from bertology.results.spread import INTERVAL, RANGE, spread

NAME = "meaning/context_pairs"


def curve(recorded: Any, **options: Any) -> LayerCurve:
    found = sensed.result(NAME, recorded, **options).data
    assert isinstance(found, LayerCurve)
    return found


def test_planted_senses_are_told_in_their_layer() -> None:
    found = curve(sensed.recording(sensed.corpus(each=40), None, sensed.first))
    accuracy, area = found.measures["accuracy"], found.measures["area under the curve"]
    assert accuracy.value[1] == area.value[1] == 1.0
    for chance in (accuracy[0], found.baselines["shuffled pairs"]["accuracy"][1]):
        assert chance.low < 0.5 < chance.high
    assert abs(area.value[0] - 0.5) < 0.2
    assert found.baselines["majority"]["accuracy"].value[0] == 0.5
    assert found.baselines["same form"]["accuracy"].value[0] == 0.5
    assert found.baselines["last four"]["accuracy"].value[0] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_balanced_by_word_and_from_two_documents(seed: int) -> None:
    own = occurrences(sensed.recording(sensed.corpus(each=30, common=0.7), None))
    pairs = drawn(own, np.arange(len(own)), np.random.default_rng(seed))
    kinds = Counter(zip(own.lemma[pairs.first].tolist(), pairs.same.tolist(), strict=True))
    assert len(kinds) == 4 and len(set(kinds.values())) == 1 and min(kinds.values()) > 5
    np.testing.assert_array_equal(own.lemma[pairs.first], own.lemma[pairs.second])
    np.testing.assert_array_equal(own.sense[pairs.first] == own.sense[pairs.second], pairs.same)
    assert (own.documents[pairs.first] != own.documents[pairs.second]).all()
    for kind in (True, False):
        used = np.concatenate([pairs.first[pairs.same == kind], pairs.second[pairs.same == kind]])
        assert len(set(used.tolist())) == len(used)


def test_no_document_is_in_both_halves() -> None:
    material = pair_material(sensed.recording(sensed.corpus(), None), None, Division("", 0, 0.5, 0), 3, purpose=NAME)
    documents = material.asked.documents
    for first, second in material.halves:
        sides = [set(documents[half.first]) | set(documents[half.second]) for half in (first, second)]
        assert not sides[0] & sides[1]


def test_cosines_are_those_of_the_vectors_end_to_end() -> None:
    own = occurrences(sensed.recording(sensed.corpus(), *[sensed.first] * 7, noise=1.0))
    pairs = drawn(own, np.arange(len(own)), np.random.default_rng(0))
    vectors = own.examples.features.astype(float)
    wide = np.concatenate(list(vectors[-4:]), -1)
    for place, view in ((2, vectors[2]), (7, wide)):
        first, second = view[pairs.first], view[pairs.second]
        cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        np.testing.assert_allclose(pair_cosines(own, pairs)[place], cosine)


WIC = "".join(f"{word}\tN\t1-0\tw{n} {word} w{n + 1}\t{word}s w{n}\n" for n in range(20) for word in ("bank", "plant"))
GOLD = "".join("T\nF\n" for _ in range(20))


def test_pairs_of_wic(tmp_path: Path) -> None:
    (tmp_path / "train.data.txt").write_text(WIC, "utf-8")
    (tmp_path / "train.gold.txt").write_text(GOLD, "utf-8")
    corpus = read(tmp_path / "train.data.txt")

    def hidden(entry: Entry) -> planted.Floats:
        generator = np.random.default_rng(entry.pieces.ids.tolist())
        states = generator.normal(size=(2, len(entry.pieces), 6))
        part = entry.input.parts[0]
        target = 1 + part.marks["target"][0]
        # In the last layer the two of a pair lie together, or opposite.
        pair, _, number = part.id.rpartition("-")
        vector = np.random.default_rng(int(pair.rpartition("-")[2])).normal(size=6)
        states[1, target] = vector if part.label == "T" or number == "1" else -vector
        return states

    recorded = planted.recording_of(corpus, [[planted.uniform]], hidden).with_derived(resolve(["hidden.words"]))
    found = curve(recorded)
    assert found.measures["accuracy"].value[1] == 1.0
    assert found.measures["accuracy"].value[0] < 0.8
    assert "20 pairs to choose a threshold on, 20 to report on" in found.units["accuracy"]
    assert spread(found.units["accuracy"]) == INTERVAL and spread(found.units["area under the curve"]) == RANGE
    with pytest.raises(Refusal, match="WiC"):
        curve(sensed.recording(Corpus(corpus.items[:1], name="half a pair"), None, None))


def test_the_threshold_may_come_from_another_corpus(tmp_path: Path) -> None:
    (tmp_path / "train.data.txt").write_text(WIC, "utf-8")
    (tmp_path / "train.gold.txt").write_text(GOLD, "utf-8")
    subject = Subject(corpus_named("english"), load("tiny"), randomise=False)
    found = run(registry.get(NAME), subject, {"train": str(tmp_path), "seeds": 2}).data
    assert isinstance(found, LayerCurve)
    assert "40 pairs to choose a threshold on" in found.units["accuracy"]
    assert found.measures["accuracy"].n[0] > 20


def test_a_corpus_without_pairs_is_refused() -> None:
    for texts in (("nothing marked",), ()):
        with pytest.raises(Refusal, match="no pairs"):
            curve(sensed.recording(read_text(*texts), None, None))
    single = Corpus(tuple(Item(item.parts) for item in sensed.corpus(each=20, common=1.0)), name="one sense")
    with pytest.raises(Refusal, match="no pairs"):
        curve(sensed.recording(single, None, None))
    with pytest.raises(Refusal, match="--seeds"):
        curve(sensed.recording(sensed.corpus(), None, None), seeds=0)
