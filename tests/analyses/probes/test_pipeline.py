"""Tasks planted at different layers come out in that order."""

from __future__ import annotations

import probed
from bertology.results.shapes import Table


def both(entry: probed.Entry, word: int) -> int:
    """The relation, in directions of its own."""
    return 4 + ("root", "nsubj", "obj").index((entry.input.parts[0].relations or ())[word])


def test_the_order_of_tasks_is_that_of_the_layers_that_have_them() -> None:
    recorded = probed.recording(probed.corpus(80), None, probed.tag, None, both, noise=0.2)
    data = probed.result("probes/pipeline", recorded, seeds=2).data
    assert isinstance(data, Table)
    assert data.rows_named == ("upos", "relation")
    expected, centre = data.measures["expected layer"].value, data.measures["centre of gravity"].value
    assert abs(expected[0] - 1) < 0.4 and abs(expected[1] - 3) < 0.4
    assert centre[0] < centre[1]
    assert (data.measures["accuracy of all layers"].value > 0.9).all()
    assert (data.measures["accuracy of layer 0"].value < 0.65).all()
    assert data.baselines["every layer alike"]["centre of gravity"].value[0] == 1.5


def test_noise_has_no_expected_layer() -> None:
    shown = probed.corpus(200, vocabulary=400)
    data = probed.result("probes/pipeline", probed.recording(shown, None, None), seeds=2).data
    assert isinstance(data, Table)
    assert (data.measures["accuracy of all layers"].value < 0.6).all()
