"""`probes/control_tasks`: probes that memorise have no selectivity; probes that read encoded labels have."""

from __future__ import annotations

import pytest

import planted_probes
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import Matrix


def matrix(recording: Recording, **options: object) -> Matrix:
    data = planted_probes.run("probes/control_tasks", recording, **options)
    assert isinstance(data, Matrix)
    return data


def test_encoded_labels_are_selective_and_labels_per_form_are_not() -> None:
    corpus = planted_probes.make_corpus(vocabulary=12)
    recording = planted_probes.make_recording(corpus, planted_probes.tag, encode_forms=True, noise=0.05)
    encoded = matrix(recording, probes="linear, mlp:32", n_seeds=2)
    assert encoded.column_names == ("linear", "mlp:32")
    assert (encoded.measures["accuracy"].value > 0.95).all()
    # Twelve forms in as many directions: both probes can memorise them.
    corpus = planted_probes.with_tags_by_form(corpus)
    recording = planted_probes.make_recording(corpus, None, encode_forms=True, noise=0.05)
    by_form = matrix(recording, probes="linear,mlp:32", n_seeds=2)
    assert (by_form.measures["accuracy"].value > 0.95).all()
    assert (abs(by_form.measures["selectivity"].value) < 0.05).all()


def test_a_larger_probe_memorises_more() -> None:
    corpus = planted_probes.make_corpus(120, vocabulary=40)
    recording = planted_probes.make_recording(corpus, planted_probes.tag, encode_forms=True, noise=0.02)
    data = matrix(recording, probes="rank:1,linear,mlp:64")
    control = data.measures["control-task accuracy"].value[0]
    assert control[0] < control[1] < control[2]
    assert control[2] > 0.85
    assert data.measures["selectivity"].value[0, 1] > data.measures["selectivity"].value[0, 2]


def test_selectivity_is_the_difference_of_accuracies() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag, None)
    data = matrix(recording, probes="linear", n_seeds=2)
    difference = data.measures["accuracy"].value - data.measures["control-task accuracy"].value
    assert abs(difference - data.measures["selectivity"].value).max() < 1e-12


def test_the_majority_class_of_the_control_task_is_that_of_the_control_labels() -> None:
    corpus = planted_probes.make_corpus(vocabulary=12)
    recording = planted_probes.make_recording(corpus, None, encode_forms=False)
    data = matrix(recording, probes="linear", n_seeds=2)
    majority = data.baselines["majority class"]
    assert majority["accuracy"] != majority["control-task accuracy"]
    # States without the form: a probe can do no better than the most frequent control label.
    control, baseline = data.measures["control-task accuracy"], majority["control-task accuracy"]
    assert (control.value <= baseline.high + 0.02).all() and (control.value > baseline.low - 0.1).all()


def test_an_unknown_probe_is_refused() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag)
    with pytest.raises(Refusal, match="no probe called 'tree:3'"):
        matrix(recording, probes="linear,tree:3")
