"""`probes/sentence`: a sentence label is predicted from the layer and the vector that encode it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
import planted_probes
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

N_LAYERS = 3


def make_recording(corpus: Corpus, layer: int, *, in_cls: bool) -> Recording:
    """States that encode the label at one layer: only in [CLS], or only in the words."""
    kind = SpecialToken.CLS if in_cls else SpecialToken.NONE

    def hidden(recorded: RecordedInput) -> FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        states = generator.normal(size=(N_LAYERS, len(recorded.tokens), 6))
        states[layer, recorded.tokens.special_kinds == kind, 0] += 4 * (recorded.text.segments[0].label == "long")
        return states

    return planted.make_recording(corpus, [[planted.uniform_head]] * (N_LAYERS - 1), hidden)


def curve(recording: Recording, **options: object) -> LayerCurve:
    return planted_probes.run_curve("probes/sentence", recording, **options)


@pytest.mark.parametrize("in_cls", [True, False])
def test_a_label_is_predicted_from_its_layer_and_its_vector(in_cls: bool) -> None:
    recording = make_recording(planted_probes.make_corpus(150), 1, in_cls=in_cls)
    pooling, other_pooling = ("cls", "mean") if in_cls else ("mean", "cls")
    measures = curve(recording, pooling=pooling).measures
    assert measures["accuracy"].value[1] > 0.9
    assert (abs(measures["accuracy"].value[[0, 2]] - 0.5) < 0.2).all()
    assert measures["compression"].value[1] > 1.5
    np.testing.assert_allclose(measures["compression"].value[[0, 2]], 1, atol=0.1)
    assert abs(curve(recording, pooling=other_pooling).measures["accuracy"].value[1] - 0.5) < 0.2


def test_annotated_splits_are_used() -> None:
    corpus = planted_probes.make_corpus(150)
    splits = ["train", "validation", "test"]
    examples = tuple(replace(example, source=splits[i % 3]) for i, example in enumerate(corpus.examples))
    data = curve(make_recording(replace(corpus, examples=examples), 1, in_cls=False))
    assert (data.sample["training examples"], data.sample["test examples"]) == (100, 50)
    assert data.measures["accuracy"].n[1] == 50
    assert data.measures["accuracy"].value[1] > 0.9


def test_a_corpus_without_labels_is_refused() -> None:
    recording = planted.make_recording(
        planted.make_corpus("no label here", "nor here"),
        [[planted.uniform_head]],
        lambda recorded: np.zeros((2, len(recorded.tokens), 4)),
    )
    with pytest.raises(Refusal, match=r"needs the annotation label.*--label"):
        curve(recording)


def test_a_single_label_is_refused() -> None:
    corpus = planted_probes.make_corpus(30)
    examples = tuple(replace(example, label="same") for example in corpus.examples)
    with pytest.raises(Refusal, match="every example has the same label, 'same'"):
        curve(make_recording(replace(corpus, examples=examples), 1, in_cls=False))
