"""A memorising probe has no selectivity; one that reads what is there has."""

from __future__ import annotations

import pytest

import probed
from bertology.errors import Refusal
from bertology.results.shapes import Matrix


def matrix(recorded: probed.Recording, **options: object) -> Matrix:
    data = probed.result("probes/control", recorded, **options).data
    assert isinstance(data, Matrix)
    return data


def test_labels_in_the_states_are_selective_and_labels_by_type_are_not() -> None:
    shown = probed.corpus(vocabulary=12)
    told = matrix(probed.recording(shown, probed.tag, identity=True, noise=0.05), probes="linear, mlp:32", seeds=2)
    assert told.columns_named == ("linear", "mlp:32")
    assert (told.measures["accuracy"].value > 0.95).all()
    # Twelve forms in as many directions: both probes can memorise them, and the states tell the tags besides.
    by_type = matrix(
        probed.recording(probed.by_type(shown), None, identity=True, noise=0.05), probes="linear,mlp:32", seeds=2
    )
    assert (by_type.measures["accuracy"].value > 0.95).all()
    assert (abs(by_type.measures["selectivity"].value) < 0.05).all()


def test_a_larger_probe_memorises_more() -> None:
    shown = probed.corpus(120, vocabulary=40)
    data = matrix(probed.recording(shown, probed.tag, identity=True, noise=0.02), probes="rank:1,linear,mlp:64")
    control = data.measures["control accuracy"].value[0]
    assert control[0] < control[1] < control[2]
    assert control[2] > 0.85
    assert data.measures["selectivity"].value[0, 1] > data.measures["selectivity"].value[0, 2]


def test_selectivity_is_the_difference() -> None:
    data = matrix(probed.recording(probed.corpus(), probed.tag, None), probes="linear", seeds=2)
    difference = data.measures["accuracy"].value - data.measures["control accuracy"].value
    assert abs(difference - data.measures["selectivity"].value).max() < 1e-12


def test_an_unknown_probe_is_refused() -> None:
    with pytest.raises(Refusal, match="no probe called 'tree:3'"):
        matrix(probed.recording(probed.corpus(), probed.tag), probes="linear,tree:3")
