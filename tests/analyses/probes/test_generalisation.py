"""`probes/generalisation`: planted rules of structure and of position, noise, splits of files and of generators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.probes.generalisation import split_of
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.read import read
from bertology.corpus.sentence import sentence
from bertology.corpus.sesame import MODALS
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.results.shapes import LayerCurve

NAME = "probes/generalisation"


def first_auxiliary(entry: Entry) -> int:
    return next(place for place, word in enumerate(entry.input.words) if word in MODALS)


def target(entry: Entry) -> int:
    return entry.input.parts[0].marks["target"][0]


def states(rule: Callable[[Entry], int] | None) -> Callable[[Entry], planted.Floats]:
    """Layer 0 is noise; layer 1 has noise and, in one dimension, the word that a rule picks."""

    def hidden(entry: Entry) -> planted.Floats:
        random = np.random.default_rng(entry.pieces.ids.tolist())
        made = random.normal(size=(2, len(entry.pieces), 5))
        if rule is not None:
            made[1, :, 3] = np.arange(len(entry.pieces)) == rule(entry) + 1  # [CLS] comes first
        return made

    return hidden


def curve(corpus: Corpus, rule: Callable[[Entry], int] | None, **options: object) -> LayerCurve:
    recording = planted.recording_of(corpus, [[planted.uniform]], states(rule))
    data = run(registry.get(NAME), Subject(recording=recording), options).data
    assert isinstance(data, LayerCurve)
    return data


@pytest.fixture(scope="module")
def auxiliaries() -> Corpus:
    return corpus_named("generated:main_auxiliary@5:240")


def test_a_rule_of_structure_generalises(auxiliaries: Corpus) -> None:
    found = curve(auxiliaries, target)
    assert set(found.measures) == {"test", "generalisation"}
    assert found.measures["test"].value[1] == found.measures["generalisation"].value[1] == 1


def test_a_rule_of_position_does_not(auxiliaries: Corpus) -> None:
    found = curve(auxiliaries, first_auxiliary)
    assert found.measures["test"].value[1] == 1
    assert found.measures["generalisation"].value[1] == 0
    rule = found.baselines["first known target"]
    assert (rule["test"].value == 1).all() and (rule["generalisation"].value == 0).all()


def test_positions_that_never_hold_a_target_give_the_published_set_away() -> None:
    # Targets are third or sixth; a wrong auxiliary that is fourth is ruled out by its position alone.
    train = ["the cat can sleep", "the cat near the dog can sleep"] * 4
    test = ["the cat who will eat can sleep"] * 5
    texts = [(text, "train") for text in train] + [(text, "generalisation") for text in test]
    items = [
        Item(
            (replace(sentence(text.split()), marks={"target": (text.split().index("can"),)}),), source=f"split={split}"
        )
        for text, split in texts
    ]
    will = "the cat near the dog will sleep"
    items += [Item((replace(sentence(will.split()), marks={"target": (5,)}),), source="split=train")] * 4
    rules = curve(Corpus(tuple(items), name="made"), None).baselines
    assert (rules["word and position"]["generalisation"].value == 1).all()
    assert (rules["first known target"]["generalisation"].value == 0).all()


def test_noise_is_at_chance(auxiliaries: Corpus) -> None:
    found = curve(auxiliaries, None)
    for name, estimates in found.measures.items():
        chance = found.baselines["chance"][name]
        assert (estimates.low < chance.high + 0.05).all() and (estimates.value < 0.4).all(), name


def test_the_nth_word_is_found_by_its_position() -> None:
    found = curve(corpus_named("generated:nth_token@0:120"), lambda _: 4)
    assert found.measures["test"].value[1] == 1
    assert (found.baselines["position"]["test"].value == 1).all()


def test_splits_of_files_and_of_generators(tmp_path: Path, auxiliaries: Corpus) -> None:
    for name, split in (("aux.gen", "generalisation"), ("sbjn.train", "train"), ("sbjn-join.gen_comp", "compound")):
        (tmp_path / name).write_text("the cat can sleep\t2\n", "utf-8")
        assert split_of(read(tmp_path / name)[0]) == split
    assert {split_of(item) for item in auxiliaries} == {"train", "test", "generalisation"}
    assert split_of(Item((sentence(["a"]),))) == ""


def test_another_corpus_can_be_trained_on(auxiliaries: Corpus) -> None:
    only = Corpus(tuple(item for item in auxiliaries if split_of(item) == "generalisation")[:20], name="generalisation")
    data = run(
        registry.get(NAME),
        Subject(only, load("tiny"), randomise=False),
        {"train": "generated:main_auxiliary@1:60", "train_limit": 40},
    ).data
    assert isinstance(data, LayerCurve)
    assert set(data.measures) == {"generalisation"} and (data.measures["generalisation"].n == 20).all()


def test_a_corpus_without_splits_is_divided(auxiliaries: Corpus) -> None:
    plain = Corpus(tuple(Item(item.parts) for item in auxiliaries), name="plain")
    assert set(curve(plain, target).measures) == {"test"}


def test_nothing_to_test_on_is_refused(auxiliaries: Corpus) -> None:
    with pytest.raises(Refusal, match="sentences with one marked target"):
        curve(auxiliaries[:1], target)
