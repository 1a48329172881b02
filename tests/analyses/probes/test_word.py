"""`probes/word`: planted labels are predicted from the layer that encodes them, and only from there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
import planted_probes
from bertology.analyses import registry
from bertology.analyses.probing.train_test_split import train_mask
from bertology.corpus.corpus import Corpus
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.sites import RAW_SITES
from bertology.results.measured_shape import gain_measure
from bertology.results.shapes import LayerCurve

NAME = "probes/word"


def curve(
    *layers: planted_probes.EncodedDimension | None, corpus: Corpus | None = None, **options: object
) -> LayerCurve:
    corpus = planted_probes.make_corpus() if corpus is None else corpus
    return planted_probes.run_curve(NAME, planted_probes.make_recording(corpus, *layers), **options)


def test_a_label_is_predicted_from_its_layer_and_at_chance_elsewhere() -> None:
    data = curve(None, planted_probes.tag, None)
    accuracy = data.measures["accuracy"]
    majority = data.baselines["majority class"]["accuracy"]
    assert accuracy.value[1] > 0.97
    assert (abs(accuracy.value[[0, 2]] - 1 / 3) < 0.12).all()
    assert abs(majority.value[0] - 1 / 3) < 0.12
    np.testing.assert_allclose(data.measures["macro F1"].value[1], accuracy.value[1], atol=0.02)
    assert data.measures["selectivity"].low[1] > 0.4
    assert (data.measures["selectivity"].low[[0, 2]] < 0.1).all()
    assert data.measures["compression"].value[1] > 2.5
    np.testing.assert_allclose(data.measures["compression"].value[[0, 2]], 1, atol=0.06)


def test_random_labels_per_form_have_no_selectivity() -> None:
    corpus = planted_probes.with_tags_by_form(planted_probes.make_corpus(vocabulary=12))
    recording = planted_probes.make_recording(corpus, None, noise=0.05, encode_forms=True)
    data = planted_probes.run_curve(NAME, recording, probe="mlp:32")
    assert data.measures["accuracy"].value[0] > 0.95
    assert data.baselines["control task"]["accuracy"].value[0] > 0.95
    assert abs(data.measures["selectivity"].value[0]) < 0.05
    assert data.baselines["most frequent label of the word"]["accuracy"].value[0] > 0.99


@pytest.mark.parametrize("probe", ["linear", "rank:3", "mlp:16", "mlp:16:8"])
def test_every_architecture_finds_an_encoded_label(probe: str) -> None:
    assert curve(planted_probes.tag, probe=probe, n_seeds=2).measures["accuracy"].value[0] > 0.95


def test_baselines_by_word_and_majority_are_counted_on_the_test_data() -> None:
    corpus = planted_probes.with_tags_by_form(planted_probes.make_corpus())
    data = curve(planted_probes.tag, corpus=corpus, n_seeds=1)
    assert data.baselines["most frequent label of the word"]["accuracy"].value[0] > 0.97
    # Test words that are not in the training data get the most frequent label of all.
    assert data.measures["accuracy"].n[0] == data.baselines["majority class"]["accuracy"].n[0] > 10


def test_labels_come_from_annotations() -> None:
    def direction(recorded: RecordedInput, word: int) -> int:
        governor = (recorded.text.segments[0].governors or ())[word]
        return 0 if governor < 0 else 1 if governor < word else 2

    data = curve(direction, label="governor_direction", n_seeds=1)
    assert data.measures["accuracy"].value[0] > 0.97


def test_all_intervals_resample_sentences_and_seeds() -> None:
    data = curve(planted_probes.tag, n_seeds=2)
    assert {estimates.interval for estimates in data.measures.values()} == {"bootstrap"}
    assert (data.measures["compression"].n > data.measures["accuracy"].n).all()  # training and test sentences


def test_the_gain_from_the_second_half_of_the_training_data_shows_whether_a_probe_still_learns() -> None:
    gain = gain_measure("accuracy")
    data = curve(None, planted_probes.tag, corpus=planted_probes.make_corpus(150))
    assert data.measures[gain].high[1] < 0.02  # learnt
    assert data.measures[gain].low[0] < 0 < data.measures[gain].high[0]  # nothing to learn
    forms = planted_probes.with_tags_by_form(planted_probes.make_corpus(40))
    recording = planted_probes.make_recording(forms, None, noise=0.05, encode_forms=True)
    memorised = planted_probes.run_curve(NAME, recording, probe="mlp:32")
    assert memorised.measures[gain].low[0] > 0.02  # one word form after the other
    assert data.baselines["zero"][gain].value.tolist() == [0, 0]
    assert gain_measure("selectivity") in data.measures


def test_the_untrained_model_is_a_baseline_of_all_measures() -> None:
    corpus = planted_probes.make_corpus()
    model, untrained = (planted_probes.make_recording(corpus, None, tag) for tag in (planted_probes.tag, None))
    recordings = [recording.with_sites([RAW_SITES["hidden.words"]]) for recording in (model, untrained)]
    data = registry.get(NAME)(*recordings, None, n_seeds=2)
    assert isinstance(data, LayerCurve)
    baseline = data.baselines["untrained model"]
    assert set(data.measures) - set(baseline) == {gain_measure("selectivity")}
    assert data.measures["compression"].low[1] > baseline["compression"].high[1]
    np.testing.assert_allclose(baseline["compression"].value, 1, atol=0.06)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "entity"}, "--label entity needs the annotation entities"),
        ({"probe": "forest"}, "no probe called 'forest'"),
        ({"probe": "mlp"}, "no probe called 'mlp'"),
        ({"min_examples": 10_000}, "no label has at least 10000 training examples"),
        ({"n_seeds": 0}, "--n-seeds was given 0"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        curve(planted_probes.tag, **options)


def test_a_single_label_is_refused() -> None:
    corpus = planted_probes.make_corpus().map_sentences(
        lambda sentence: replace(sentence, pos=("NOUN",) * len(sentence))
    )
    with pytest.raises(Refusal, match="every example has the same label, 'NOUN'"):
        curve(planted_probes.tag, corpus=corpus)


def test_a_label_missing_from_the_training_data_is_refused_or_left_out() -> None:
    corpus = planted_probes.make_corpus()
    index = int(np.flatnonzero(~train_mask(planted.recorded_inputs(corpus), 0.7))[0])
    examples = list(corpus.examples)
    sentence = examples[index].segments[0]
    examples[index] = replace(examples[index], segments=(replace(sentence, pos=("X", *(sentence.pos or ())[1:])),))
    corpus = replace(corpus, examples=tuple(examples))
    with pytest.raises(Refusal, match="'X' occurs in the test data, but not in the training data"):
        curve(None, corpus=corpus, min_examples=1)
    sample = curve(None, corpus=corpus, n_seeds=1).sample
    assert sample["rare labels"] == sample["examples with rare labels"] == 1


def test_a_corpus_without_annotations_is_refused() -> None:
    recording = planted.make_recording(
        planted.make_corpus("no tags here"),
        [[planted.uniform_head]],
        lambda recorded: np.zeros((2, len(recorded.tokens), 4)),
    )
    with pytest.raises(Refusal, match="needs the annotation pos"):
        planted_probes.run(NAME, recording)
