"""Planted labels are found in the layer that has them, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import probed
from bertology.errors import Refusal
from bertology.measures.division import training_part
from bertology.results.shapes import LayerCurve


def curve(*layers: probed.Told | None, corpus: probed.Corpus | None = None, **options: object) -> LayerCurve:
    shown = probed.corpus() if corpus is None else corpus
    data = probed.result("probes/token", probed.recording(shown, *layers), **options).data
    assert isinstance(data, LayerCurve)
    return data


def test_a_label_is_found_in_its_layer_and_chance_elsewhere() -> None:
    data = curve(None, probed.tag, None)
    found = data.measures["accuracy"]
    majority = data.baselines["majority"]["accuracy"]
    assert found.value[1] > 0.97
    assert (abs(found.value[[0, 2]] - 1 / 3) < 0.12).all()
    assert abs(majority.value[0] - 1 / 3) < 0.12
    np.testing.assert_allclose(data.measures["macro F1"].value[1], found.value[1], atol=0.02)
    assert data.measures["selectivity"].low[1] > 0.4
    assert (data.measures["selectivity"].low[[0, 2]] < 0.1).all()
    assert data.measures["compression"].value[1] > 2.5
    np.testing.assert_allclose(data.measures["compression"].value[[0, 2]], 1, atol=0.06)


def test_what_is_random_by_type_has_no_selectivity() -> None:
    shown = probed.by_type(probed.corpus(vocabulary=12))
    recorded = probed.recording(shown, None, noise=0.05, identity=True)
    data = probed.result("probes/token", recorded, probe="mlp:32").data
    assert isinstance(data, LayerCurve)
    assert data.measures["accuracy"].value[0] > 0.95
    assert data.baselines["control labels"]["accuracy"].value[0] > 0.95
    assert abs(data.measures["selectivity"].value[0]) < 0.05
    assert data.baselines["most frequent label of the word"]["accuracy"].value[0] > 0.99


@pytest.mark.parametrize("probe", ["linear", "rank:3", "mlp:16", "mlp:16:8"])
def test_every_form_of_probe_finds_it(probe: str) -> None:
    assert curve(probed.tag, probe=probe, seeds=2).measures["accuracy"].value[0] > 0.95


def test_a_rule_by_word_and_the_majority_are_counted_by_hand() -> None:
    data = curve(probed.tag, corpus=probed.by_type(probed.corpus()), seeds=1)
    assert data.baselines["most frequent label of the word"]["accuracy"].value[0] > 0.97
    # Words of the test that are not in training get the most frequent label of all.
    assert data.measures["accuracy"].n[0] == data.baselines["majority"]["accuracy"].n[0] > 10


def test_labels_come_from_what_is_annotated() -> None:
    def direction(entry: probed.Entry, word: int) -> int:
        head = (entry.input.parts[0].heads or ())[word]
        return 0 if head < 0 else 1 if head < word else 2

    data = curve(direction, label="head_direction", seeds=1)
    assert data.measures["accuracy"].value[0] > 0.97


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "entity"}, "probes/token --label entity needs the annotation entities"),
        ({"probe": "forest"}, "no probe called 'forest'"),
        ({"probe": "mlp"}, "no probe called 'mlp'"),
        ({"minimum": 10_000}, "no label has 10000 cases"),
        ({"seeds": 0}, "--seeds was given 0"),
    ],
)
def test_what_cannot_be_probed_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        curve(probed.tag, **options)


def test_one_label_only_is_refused() -> None:
    same = probed.corpus().map(lambda one: probed.replace(one, pos=("NOUN",) * len(one)))
    with pytest.raises(Refusal, match="every case has the same label, 'NOUN'"):
        curve(probed.tag, corpus=same)


def test_a_label_that_training_lacks_is_refused_or_left_out() -> None:
    shown = probed.corpus()
    place = int(np.flatnonzero(~training_part(probed.planted.entries_of(shown), 0.7))[0])
    items = list(shown.items)
    one = items[place].parts[0]
    items[place] = probed.replace(items[place], parts=(probed.replace(one, pos=("X", *(one.pos or ())[1:])),))
    odd = probed.replace(shown, items=tuple(items))
    with pytest.raises(Refusal, match="'X' is in the test and not in training"):
        curve(None, corpus=odd, minimum=1)
    assert "rare labels left out (X)" in curve(None, corpus=odd, seeds=1).units["accuracy"]


def test_a_corpus_without_annotation_is_refused() -> None:
    shown = probed.planted.corpus_of("no tags here")
    recorded = probed.planted.recording_of(
        shown, [[probed.planted.uniform]], lambda entry: np.zeros((2, len(entry.pieces), 4))
    )
    with pytest.raises(Refusal, match="needs the annotation pos"):
        probed.result("probes/token", recorded)
