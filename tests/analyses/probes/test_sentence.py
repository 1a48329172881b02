"""A label of whole sentences is found in the layer and the vector that have it."""

from __future__ import annotations

import numpy as np
import pytest

import probed
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve

LAYERS = 3


def recorded(shown: probed.Corpus, layer: int, *, special: bool) -> probed.Recording:
    """States in which the label is told at one layer: by [CLS] alone, or by the words alone."""

    def hidden(entry: probed.Entry) -> probed.planted.Floats:
        generator = np.random.default_rng(entry.pieces.ids.tolist())
        states = generator.normal(size=(LAYERS, len(entry.pieces), 6))
        told = (entry.pieces.special == Special.CLS) if special else (entry.pieces.special == Special.NONE)
        states[layer, told, 0] += 4 * (entry.input.parts[0].label == "long")
        return states

    return probed.planted.recording_of(shown, [[probed.planted.uniform]] * (LAYERS - 1), hidden)


def curve(recording: probed.Recording, **options: object) -> LayerCurve:
    data = probed.result("probes/sentence", recording, **options).data
    assert isinstance(data, LayerCurve)
    return data


@pytest.mark.parametrize("special", [True, False])
def test_a_label_is_found_in_its_layer_and_its_vector(special: bool) -> None:
    recording = recorded(probed.corpus(150), 1, special=special)
    own, other = ("cls", "mean") if special else ("mean", "cls")
    found = curve(recording, vector=own).measures
    assert found["accuracy"].value[1] > 0.9
    assert (abs(found["accuracy"].value[[0, 2]] - 0.5) < 0.2).all()
    assert found["compression"].value[1] > 1.5
    np.testing.assert_allclose(found["compression"].value[[0, 2]], 1, atol=0.1)
    assert abs(curve(recording, vector=other).measures["accuracy"].value[1] - 0.5) < 0.2


def test_items_that_name_their_split_are_divided_so() -> None:
    shown = probed.corpus(150)
    splits = ["train", "validation", "test"]
    items = tuple(probed.replace(item, source=splits[i % 3]) for i, item in enumerate(shown.items))
    data = curve(recorded(probed.replace(shown, items=items), 1, special=False))
    assert "100 cases to train on, 50 to test on" in data.units["accuracy"]
    assert data.measures["accuracy"].n[1] == 50
    assert data.measures["accuracy"].value[1] > 0.9


def test_without_labels_it_is_refused() -> None:
    shown = probed.planted.corpus_of("no label here", "nor here")
    recording = probed.planted.recording_of(
        shown, [[probed.planted.uniform]], lambda entry: np.zeros((2, len(entry.pieces), 4))
    )
    with pytest.raises(Refusal, match="needs the annotation label"):
        curve(recording)


def test_one_class_is_refused() -> None:
    shown = probed.corpus(30)
    items = tuple(probed.replace(item, label="same") for item in shown.items)
    with pytest.raises(Refusal, match="every case has the same label, 'same'"):
        curve(recorded(probed.replace(shown, items=items), 1, special=False))
