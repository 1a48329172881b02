"""`probes/hierarchical_generalisation`: planted structural and positional rules, noise, and splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.probes.hierarchical_generalisation import example_split
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.open_sesame_grammar import MODALS
from bertology.corpus.read import load_corpus, read
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve

NAME = "probes/hierarchical_generalisation"
TEST, GENERALISATION = "accuracy (test)", "accuracy (generalisation)"

Rule = Callable[[RecordedInput], int]
"""The index of the word that a rule picks."""


def first_auxiliary(recorded: RecordedInput) -> int:
    return next(index for index, word in enumerate(recorded.text.words) if word in MODALS)


def target(recorded: RecordedInput) -> int:
    return recorded.text.segments[0].marked_words["target"][0]


def make_states(rule: Rule | None) -> Callable[[RecordedInput], FloatArray]:
    """Layer 0 is noise; layer 1 also encodes the word picked by a rule in one dimension."""

    def hidden(recorded: RecordedInput) -> FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        states = generator.normal(size=(2, len(recorded.tokens), 5))
        if rule is not None:
            states[1, :, 3] = np.arange(len(recorded.tokens)) == rule(recorded) + 1  # [CLS] comes first
        return states

    return hidden


def curve(corpus: Corpus, rule: Rule | None, **options: object) -> LayerCurve:
    recording = planted.make_recording(corpus, [[planted.uniform_head]], make_states(rule))
    data = run_analysis(registry.get(NAME), RunInputs(recording=recording), options).data
    assert isinstance(data, LayerCurve)
    return data


@pytest.fixture(scope="module")
def auxiliaries() -> Corpus:
    return load_corpus("generated:main_auxiliary@5:240")


def test_a_structural_rule_generalises(auxiliaries: Corpus) -> None:
    data = curve(auxiliaries, target)
    assert set(data.measures) == {TEST, GENERALISATION}
    assert data.measures[TEST].value[1] == data.measures[GENERALISATION].value[1] == 1


def test_a_positional_rule_does_not_generalise(auxiliaries: Corpus) -> None:
    data = curve(auxiliaries, first_auxiliary)
    assert data.measures[TEST].value[1] == 1
    assert data.measures[GENERALISATION].value[1] == 0
    baseline = data.baselines["first known target word"]
    assert (baseline[TEST].value == 1).all() and (baseline[GENERALISATION].value == 0).all()


def test_positions_that_are_never_a_target_reveal_the_published_targets() -> None:
    # Targets are third or sixth words; a wrong auxiliary that is the fourth word is excluded by its position alone.
    texts = [(text, "can", "train") for text in ["the cat can sleep", "the cat near the dog can sleep"] * 4]
    texts += [("the cat who will eat can sleep", "can", "generalisation")] * 5
    texts += [("the cat near the dog will sleep", "will", "train")] * 4
    examples = [
        Example(
            (replace(sentence_from_words(text.split()), marked_words={"target": (text.split().index(word),)}),),
            factors={"split": split},
        )
        for text, word, split in texts
    ]
    baselines = curve(Corpus(tuple(examples), name="planted"), None).baselines
    assert (baselines["word form and position"][GENERALISATION].value == 1).all()
    assert (baselines["first known target word"][GENERALISATION].value == 0).all()


def test_noise_is_at_chance(auxiliaries: Corpus) -> None:
    data = curve(auxiliaries, None)
    for name, estimates in data.measures.items():
        chance = data.baselines["chance"][name]
        assert (estimates.low < chance.high + 0.05).all() and (estimates.value < 0.4).all(), name


def test_the_usual_position_identifies_the_nth_word() -> None:
    data = curve(load_corpus("generated:nth_token@0:120"), lambda _: 4)
    assert data.measures[TEST].value[1] == 1
    assert (data.baselines["usual position"][TEST].value == 1).all()


def test_splits_come_from_files_and_from_generators(tmp_path: Path, auxiliaries: Corpus) -> None:
    for name, split in (("aux.gen", "generalisation"), ("sbjn.train", "train"), ("sbjn-join.gen_comp", "compound")):
        (tmp_path / name).write_text("the cat can sleep\t2\n", "utf-8")
        assert example_split(read(tmp_path / name)[0]) == split
    assert {example_split(example) for example in auxiliaries} == {"train", "test", "generalisation"}
    assert example_split(Example((sentence_from_words(["a"]),))) == ""


def test_probes_can_be_trained_on_another_corpus(auxiliaries: Corpus) -> None:
    examples = tuple(example for example in auxiliaries if example_split(example) == "generalisation")[:20]
    inputs = RunInputs(Corpus(examples, name="generalisation"), load("tiny"), random_baseline=False)
    options = {"train_corpus": "generated:main_auxiliary@1:60", "train_size": 40}
    data = run_analysis(registry.get(NAME), inputs, options).data
    assert isinstance(data, LayerCurve)
    assert set(data.measures) == {GENERALISATION} and (data.measures[GENERALISATION].n == 20).all()


def test_a_corpus_without_splits_is_split_at_random(auxiliaries: Corpus) -> None:
    plain = Corpus(tuple(Example(example.segments) for example in auxiliaries), name="plain")
    assert set(curve(plain, target).measures) == {TEST}


def test_a_corpus_without_test_sentences_is_refused(auxiliaries: Corpus) -> None:
    with pytest.raises(Refusal, match="sentences with one marked target"):
        curve(auxiliaries[:1], target)
