"""`probes/pipeline`: tasks planted at different layers come out in that order."""

from __future__ import annotations

import planted_probes
from bertology.encoder.token_batch import RecordedInput
from bertology.results.measured_shape import gain_measure
from bertology.results.shapes import Table


def relation(recorded: RecordedInput, word: int) -> int:
    """The relation, in other dimensions than the tags."""
    return 4 + ("root", "nsubj", "obj").index((recorded.text.segments[0].relations or ())[word])


def test_tasks_are_ordered_by_the_layers_that_encode_them() -> None:
    corpus = planted_probes.make_corpus(80)
    recording = planted_probes.make_recording(corpus, None, planted_probes.tag, None, relation, noise=0.2)
    data = planted_probes.run("probes/pipeline", recording, n_seeds=2)
    assert isinstance(data, Table)
    assert data.row_names == ("part of speech", "dependency relation")
    expected, centre = data.measures["expected layer"].value, data.measures["centre of gravity"].value
    assert abs(expected[0] - 1) < 0.4 and abs(expected[1] - 3) < 0.4
    assert centre[0] < centre[1]
    assert (data.measures["accuracy (all layers)"].value > 0.9).all()
    assert (data.measures["accuracy (layer 0)"].value < 0.65).all()
    assert data.baselines["equal layer weights"]["centre of gravity"].value[0] == 1.5
    assert data.attributes["labels"] == (3, 2)
    assert data.measures["expected layer"].interval == "bootstrap"
    assert data.measures["expected layer"].high[0] < data.measures["expected layer"].low[1]
    shift = data.measures[gain_measure("expected layer")]
    assert (abs(shift.value) < 0.3).all() and (shift.low <= shift.value).all()
    assert all(n > 40 for n in data.attributes["training sentences"] if isinstance(n, int))


def test_noise_has_no_expected_layer() -> None:
    corpus = planted_probes.make_corpus(200, vocabulary=400)
    data = planted_probes.run("probes/pipeline", planted_probes.make_recording(corpus, None, None), n_seeds=2)
    assert isinstance(data, Table)
    assert (data.measures["accuracy (all layers)"].value < 0.6).all()
